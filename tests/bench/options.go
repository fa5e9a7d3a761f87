package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stowage-csi/stowage/pkg/params"
	"github.com/stowage-csi/stowage/tests/localpools"
)

// The pools of the driver.
const (
	directoryPool = localpools.Directory
	imagePool     = localpools.Image
)

// defaultVolumes is the number of volumes of each phase: 99th percentiles need hundreds, and a driver with 50 ms a
// lifecycle still finishes within 90 s.
const defaultVolumes = 250

type options struct {
	binary      string
	pools       []string
	inflight    []int
	volumes     int
	fsType      string
	size        params.Size
	dir         string
	floorServer string // the socket to serve; set in the child that serves the floor's RPCs
}

func parseOptions(args []string, usage io.Writer) (options, error) {
	var opts options
	var pools, inflight, size string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&opts.binary, "binary", "bin/stowage", "the driver's `file`")
	flags.StringVar(&pools, "pools", directoryPool+","+imagePool, "the `list` of pools to measure")
	flags.StringVar(&inflight, "inflight", "1,8,32", "the `list` of numbers of volumes in flight")
	flags.IntVar(&opts.volumes, "volumes", defaultVolumes, "the `number` of volumes for each pool and number in flight")
	flags.StringVar(&opts.fsType, "fstype", "ext4", "the `filesystem` of the image pool's volumes: ext4, xfs or btrfs")
	flags.StringVar(&size, "size", "64Mi", "the volumes' `size`; xfs needs 300Mi at least, btrfs 128Mi")
	flags.StringVar(&opts.dir, "dir", "/var/tmp", "the `directory` on whose filesystem to measure")
	flags.StringVar(&opts.floorServer, "floor-server", "", "for internal use: serve empty RPCs on the `socket`")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("%q is not understood: all that can be said is said with flags", flags.Arg(0))
	}
	return opts, opts.complete(pools, inflight, size)
}

func (o *options) complete(pools, inflight, size string) (err error) {
	o.pools = strings.Split(pools, ",")
	for i, pool := range o.pools {
		if pool != directoryPool && pool != imagePool || slices.Contains(o.pools[:i], pool) {
			return fmt.Errorf("-pools is %q: use directory, image or both, each once", pools)
		}
	}
	for text := range strings.SplitSeq(inflight, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-inflight is %q: use numbers from 1, separated by commas", inflight)
		}
		o.inflight = append(o.inflight, n)
	}
	if o.volumes < slices.Max(o.inflight) {
		return fmt.Errorf("-volumes is %d: use at least as many as are in flight, %d", o.volumes, slices.Max(o.inflight))
	}
	if !slices.Contains([]string{"ext4", "xfs", "btrfs"}, o.fsType) {
		return fmt.Errorf("-fstype is %q: use ext4, xfs or btrfs", o.fsType)
	}
	if o.size, err = params.ParseSize(size); err != nil {
		return fmt.Errorf("-size: %w", err)
	}
	return nil
}
