package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// restaging holds the costs of an already formatted volume, which is the case for all stagings of a volume except the
// first: the driver's NodeStageVolume and NodePublishVolume, and, alternating with them, the system calls that make a
// volume of the image pool visible at a path.
type restaging struct {
	stage, publish      series
	attach, mount, bind series
	handled             time.Duration // by the driver, on average for a volume; the metric has only sums
}

// restageRounds is the number of samples; restageWarmUp rounds before them fill the caches and do not count.
const (
	restageRounds = 200
	restageWarmUp = 10
)

func newRestaging(fsType string) *restaging {
	return &restaging{
		stage: series{name: "NodeStageVolume"}, publish: series{name: "NodePublishVolume"},
		attach: series{name: "loop device: attach, direct I/O"}, mount: series{name: fsType + " mount"},
		bind: series{name: "bind mount, by mount(2)"},
	}
}

// floor returns the sum of the necessary system calls.
func (r *restaging) floor() time.Duration {
	return r.attach.median() + r.mount.median() + r.bind.median()
}

func (r *restaging) measured() time.Duration {
	s := series{took: make([]time.Duration, len(r.stage.took))}
	for i := range s.took {
		s.took[i] = r.stage.took[i] + r.publish.took[i]
	}
	return s.median()
}

// measure takes a new volume and a new image through the rounds.
func (r *restaging) measure(ctx context.Context, opts options, d *driver, dir string) error {
	v := newVolume(newClient(d.conn), opts, imagePool, "bench-restage", dir)
	if err := v.prepare(); err != nil {
		return err
	}
	f, err := newBareVolume(ctx, opts, filepath.Join(dir, "bare"))
	if err != nil {
		return err
	}
	if err := limited(ctx, v.create); err != nil {
		return err
	}
	rounds := func(n int) error {
		return repeat(ctx, n, func(int) error { return errors.Join(f.round(r), r.round(ctx, v)) })
	}
	err = rounds(restageWarmUp)
	if err == nil {
		*r = *newRestaging(opts.fsType)
		err = r.watch(ctx, d, rounds)
	}
	if err := errors.Join(err, limited(ctx, v.delete), f.remove()); err != nil {
		return err
	}
	return removeFolders(dir, []*volume{v})
}

// watch runs the rounds that count, and reads the driver's metric before and after.
func (r *restaging) watch(ctx context.Context, d *driver, rounds func(int) error) error {
	before, err := d.handled(ctx, r.stage.name, r.publish.name)
	if err != nil {
		return err
	}
	if err := rounds(restageRounds); err != nil {
		return err
	}
	after, err := d.handled(ctx, r.stage.name, r.publish.name)
	r.handled = (after - before) / restageRounds
	return err
}

// round stages and publishes the volume, and unpublishes and unstages it.
func (r *restaging) round(ctx context.Context, v *volume) error {
	for _, part := range []struct {
		series *series
		rpc    func(context.Context) error
	}{{&r.stage, v.stage}, {&r.publish, v.publish}, {&series{}, v.unpublish}, {&series{}, v.unstage}} {
		if err := part.series.time(func() error { return limited(ctx, part.rpc) }); err != nil {
			return err
		}
	}
	return nil
}

// bareVolume is an image with a filesystem, and its mount points, without a driver.
type bareVolume struct {
	dir, staging, target string
	fsType               string
	image                *os.File
}

func newBareVolume(ctx context.Context, opts options, dir string) (*bareVolume, error) {
	b := &bareVolume{dir: dir, staging: filepath.Join(dir, "staging"), target: filepath.Join(dir, "target"),
		fsType: opts.fsType}
	for _, path := range []string{dir, b.staging, b.target} {
		if err := os.Mkdir(path, 0o700); err != nil {
			return nil, err
		}
	}
	var err error
	if b.image, err = createImage(filepath.Join(dir, "image"), int64(opts.size)); err != nil {
		return nil, err
	}
	return b, makeFilesystem(ctx, opts.fsType, b.image.Name())
}

func (b *bareVolume) remove() error { return errors.Join(b.image.Close(), os.RemoveAll(b.dir)) }

// round mounts the image at the target, and unmounts it. The loop device uses direct I/O, as the driver promises, and
// so keeps no second copy of the volume's pages in memory. This makes mounting more expensive.
func (b *bareVolume) round(r *restaging) error {
	var device *os.File
	if err := r.attach.time(func() (err error) {
		device, err = attachLoop(b.image, unix.LO_FLAGS_DIRECT_IO)
		return err
	}); err != nil {
		return err
	}
	return errors.Join(b.show(r, device.Name()), detachLoop(device))
}

func (b *bareVolume) show(r *restaging, device string) error {
	err := r.mount.time(func() error {
		return os.NewSyscallError("mount", unix.Mount(device, b.staging, b.fsType, 0, ""))
	})
	if err != nil {
		return err
	}
	err = mounted(b.target, r.bind.time(func() error { return bindByMount(b.staging, b.target) }))
	return mounted(b.staging, err)
}

func (r *restaging) report(out io.Writer) {
	if len(r.stage.took) == 0 {
		return
	}
	t := newTable("A volume of pool image that is formatted already, one in flight, in microseconds", "lrrrr")
	t.row("part", "p50", "p95", "p99", "samples")
	for _, s := range []*series{&r.stage, &r.publish, &r.attach, &r.mount, &r.bind} {
		t.row(s.name, micros(s.median()), micros(s.percentile(95)), micros(s.percentile(99)), len(s.took))
	}
	t.print(out)
	fmt.Fprintf(out, "\nNodeStageVolume and NodePublishVolume take %s microseconds (median), attach, mount and bind %s; "+
		"measured/floor = %.2f\n",
		micros(r.measured()), micros(r.floor()), float64(r.measured())/float64(r.floor()))
	mean := r.attach.mean() + r.mount.mean() + r.bind.mean()
	fmt.Fprintf(out, "In the driver, by its own metric, the two take %s microseconds (mean), attach, mount and bind %s; "+
		"handled/floor = %.2f\n",
		micros(r.handled), micros(mean), float64(r.handled)/float64(mean))
}
