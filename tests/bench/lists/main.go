package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/stowage-csi/stowage/tests/localpools"
	"github.com/stowage-csi/stowage/tests/orchestrator"
)

// clients is the number of concurrent clients that create volumes.
const clients = 16

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	binary := flag.String("binary", "bin/stowage", "the driver")
	volumes := flag.Int("volumes", 100_000, "how many volumes are made")
	flag.Parse()
	if err := run(ctx, *binary, *volumes, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "lists: %v\n", err)
		os.Exit(1)
	}
}

// subject is a backend to measure.
type subject struct {
	name, backend string
	parameters    map[string]string
	forgets       bool // its volumes do not outlive its process
}

func run(ctx context.Context, binary string, volumes int, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "backend\tmade in\tlisted in\tpages\tlargest page\tmemory\tafter a start\tmemory\t")
	for _, s := range []subject{
		{"memory", "memory", nil, true},
		{"local, directories", "local", map[string]string{"pool": "directory"}, false},
	} {
		r, err := measure(ctx, s, binary, volumes)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		_, _ = fmt.Fprintf(table, "%s\t%v\t%v\t%d\t%s\t%s\t", s.name, short(r.made), short(r.first.took), r.first.pages,
			mib(r.first.largest), mib(r.first.memory))
		if !s.forgets {
			_, _ = fmt.Fprintf(table, "%v\t%s\t", short(r.second.took), mib(r.second.memory))
		}
		_, _ = fmt.Fprintln(table)
	}
	return table.Flush()
}

// result holds the measurements of one backend.
type result struct {
	made          time.Duration
	first, second list // of the driver that created the volumes, and after its restart
}

func measure(ctx context.Context, s subject, binary string, volumes int) (r result, err error) {
	space, err := orchestrator.NewWorkspace("lists")
	if err != nil {
		return r, err
	}
	d := &orchestrator.Driver{Binary: binary, Workspace: space, Backend: s.backend}
	if s.backend == "local" {
		pools, err := localpools.Flag(space.Dir)
		if err != nil {
			return r, errors.Join(err, space.Remove())
		}
		d.Args = []string{pools}
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\nThe driver's log ends with:\n%s", err, d.Tail(20))
		}
		if d.Running() {
			_ = d.Kill(true) // The first error is reported.
		}
		_ = space.Remove() // As above.
	}()
	if _, err := d.Start(ctx); err != nil {
		return r, err
	}
	handles, took, err := makeVolumes(ctx, d, s.parameters, volumes)
	if err != nil {
		return r, err
	}
	r.made = took
	if r.first, err = listAll(ctx, d, handles); err != nil || s.forgets {
		return r, err
	}
	if err := d.Stop(ctx); err != nil {
		return r, err
	}
	if _, err := d.Start(ctx); err != nil {
		return r, err
	}
	r.second, err = listAll(ctx, d, handles)
	return r, err
}
