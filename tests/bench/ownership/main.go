package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

func main() { os.Exit(start()) }

// start returns the exit code: 0, 1 for a failure, or 2 for wrong flags.
func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	opts, err := parseOptions(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(os.Stderr, "ownership:", err)
		return 2
	}
	if err := run(ctx, opts, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "ownership:", err)
		return 1
	}
	return 0
}

type options struct {
	files       int
	rounds      int
	filesystems []string
	shapes      []shape
	dir         string
}

func parseOptions(args []string, usage io.Writer) (options, error) {
	var opts options
	var filesystems, shapes string
	flags := flag.NewFlagSet("ownership", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.IntVar(&opts.files, "files", 1_000_000, "the `number` of files")
	flags.IntVar(&opts.rounds, "rounds", 1, "how `many` times each is measured; the fastest counts")
	flags.StringVar(&filesystems, "filesystems", "ext4,xfs", "the `list` of filesystems: ext4, xfs")
	flags.StringVar(&shapes, "shapes", "wide,flat",
		"the `list` of shapes: wide for directories of a thousand files, flat for a single one")
	flags.StringVar(&opts.dir, "dir", "/var/tmp", "the `directory` for the images")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	opts.filesystems = strings.Split(filesystems, ",")
	for _, fs := range opts.filesystems {
		if !slices.Contains([]string{"ext4", "xfs"}, fs) {
			return opts, fmt.Errorf("-filesystems is %q: use ext4, xfs or both", filesystems)
		}
	}
	for name := range strings.SplitSeq(shapes, ",") {
		if s := shape(name); s != wide && s != flat {
			return opts, fmt.Errorf("-shapes is %q: use wide, flat or both", shapes)
		}
		opts.shapes = append(opts.shapes, shape(name))
	}
	if opts.files < 1 || opts.rounds < 1 || flags.NArg() > 0 {
		return opts, fmt.Errorf("-files and -rounds are %d and %d, with %q after the flags: use numbers from 1, and "+
			"nothing else", opts.files, opts.rounds, flags.Args())
	}
	return opts, nil
}

// run measures everything and prints the report to out; progress goes to log.
func run(ctx context.Context, opts options, out, log io.Writer) (err error) {
	if unix.Geteuid() != 0 {
		return errors.New("this needs root: the mounts and loop devices are real")
	}
	space, err := newWorkspace(ctx, opts.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, space.close()) }()
	fmt.Fprintf(out, "%d CPUs, %d files, the fastest of %d\n", runtime.NumCPU(), opts.files, opts.rounds)
	for _, fs := range opts.filesystems {
		for _, s := range opts.shapes {
			b := &bench{space: space, opts: opts, fs: fs, shape: s, log: log, methods: methods()}
			if err := b.run(ctx); err != nil {
				return fmt.Errorf("%s, %s: %w", fs, s, err)
			}
			b.report(out)
		}
	}
	return nil
}
