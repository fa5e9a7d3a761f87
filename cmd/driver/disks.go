package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/stowage-csi/stowage/pkg/disks"
	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/pkg/driver"
	"github.com/stowage-csi/stowage/pkg/openfiles"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// disksOptions are the flags of the process that opens disks.
type disksOptions struct {
	config, endpoint, dataDir, linkDir string
	rescan                             time.Duration
	files                              openfiles.Bound
}

func disksCommand() *cobra.Command {
	o := &disksOptions{}
	cmd := &cobra.Command{
		Use:   "disks",
		Short: "Find the disks of a node, and wipe those that are released",
		Long: `Find disks, partitions and mount points by the rules of a configuration, and wipe those that come back. Who asks for that is
'stowage-manager worker', at a socket: this process is root and has neither a token nor a network.`,
		Example: `  stowage disks --config=/etc/stowage/disks.yaml --endpoint=/run/stowage/disks/disks.sock --data-dir=/var/lib/stowage/disks`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.config, "config", "",
		"a YAML file that says which disks are found (docs/design/018-node-storage.md)")
	flags.StringVar(&o.endpoint, "endpoint", "unix:///run/stowage/disks/disks.sock",
		"the socket to serve, as a URL or a bare path")
	flags.StringVar(&o.dataDir, "data-dir", "/var/lib/stowage/disks",
		"the directory of what must outlive a restart; links in it leads to --link-dir")
	flags.StringVar(&o.linkDir, "link-dir", "/run/stowage/disks/links",
		"the directory of the links to devices, in memory: none may outlive the start of the machine")
	flags.DurationVar(&o.rescan, "rescan", time.Minute,
		"how long disks are not looked for when no event of the kernel tells of a change")
	o.files.Bind(flags, openfiles.Usual)
	return cmd
}

func (o *disksOptions) run(ctx context.Context) (err error) {
	defer func() { err = untilStopped(ctx, err) }()
	if err := o.files.Apply(); err != nil {
		return err
	}
	options, err := o.options()
	if err != nil {
		return err
	}
	listener, err := driver.Listen(ctx, o.endpoint)
	if err != nil {
		return fmt.Errorf("--endpoint: %w", err)
	}
	engine, err := disks.Open(options)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error { return engine.Run(both) })
	group.Go(func() error { return report.Serve(both, listener, engine) })
	return group.Wait()
}

// options checks the flags and reads the configuration.
func (o *disksOptions) options() (disks.Options, error) {
	if o.config == "" {
		return disks.Options{}, errors.New("--config is missing: name a file that says which disks are found")
	}
	if o.rescan < time.Second {
		return disks.Options{}, fmt.Errorf("--rescan is %s: it must be 1s at least", o.rescan)
	}
	dir, err := safepath.Absolute(o.dataDir)
	if err != nil {
		return disks.Options{}, fmt.Errorf("--data-dir: %w", err)
	}
	links, err := safepath.Absolute(o.linkDir)
	if err != nil {
		return disks.Options{}, fmt.Errorf("--link-dir: %w", err)
	}
	text, err := os.ReadFile(o.config)
	if err != nil {
		return disks.Options{}, fmt.Errorf("--config: %w", err)
	}
	config, err := discovery.Parse(text)
	if err != nil {
		return disks.Options{}, fmt.Errorf("--config=%s: %w", o.config, err)
	}
	return disks.Options{
		Config: config, StateDir: filepath.Join(dir, "state"), LinkDir: links, LinkPath: filepath.Join(dir, "links"),
		Rescan: o.rescan, FirstPause: 5 * time.Second, LastPause: 5 * time.Minute,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}, nil
}
