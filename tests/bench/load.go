package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// turns is the number of parts of a phase that alternates with the floor. On a shared machine the cost of an fsync
// changes by the minute: only interleaved measurements are comparable.
const turns = 10

// warmUp is the number of lifecycles before the clock starts in each phase.
const warmUp = 8

// phase holds the measurements of one pool with one number of volumes in flight.
type phase struct {
	pool     string
	inflight int
	floor    *floor // measured in between; nil otherwise
	timings  []timing
	wall     time.Duration
	cpu      time.Duration // of the driver and its commands
	peak     int64         // bytes
}

func (p *phase) throughput() float64 { return float64(len(p.timings)) / p.wall.Seconds() }

func (p *phase) cpuPerVolume() time.Duration { return p.cpu / time.Duration(len(p.timings)) }

// rpc returns the times of the lifecycle's RPC with that index.
func (p *phase) rpc(i int) series {
	s := series{name: rpcNames()[i]}
	for _, t := range p.timings {
		s.took = append(s.took, t[i])
	}
	return s
}

// lifecycle returns the times of whole lifecycles, without the load generator's work between RPCs.
func (p *phase) lifecycle() series {
	s := series{name: "lifecycle"}
	for _, t := range p.timings {
		s.took = append(s.took, t.total())
	}
	return s
}

// load starts a driver and measures every pool with every number of volumes in flight, and finally the restaging of a
// volume.
func load(ctx context.Context, opts options, dir string, log io.Writer) (phases []*phase, again *restaging, err error) {
	d, err := startDriver(ctx, opts.binary, dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	for _, pool := range opts.pools {
		for i, inflight := range opts.inflight {
			fmt.Fprintf(log, "pool %s, %d in flight: %d volumes\n", pool, inflight, opts.volumes)
			p := &phase{pool: pool, inflight: inflight}
			if i == 0 {
				p.floor = newFloor(opts, pool, dir)
			}
			if err := p.measure(ctx, opts, d, filepath.Join(dir, "pods")); err != nil {
				return nil, nil, d.explain(fmt.Errorf("pool %s, %d in flight: %w", pool, inflight, err))
			}
			phases = append(phases, p)
		}
	}
	again = newRestaging(opts.fsType)
	if slices.Contains(opts.pools, imagePool) {
		fmt.Fprintf(log, "pool %s, staged again: %d rounds\n", imagePool, restageRounds)
		if err := again.measure(ctx, opts, d, filepath.Join(dir, "pods")); err != nil {
			return nil, nil, d.explain(fmt.Errorf("pool %s, staged again: %w", imagePool, err))
		}
	}
	return phases, again, nil
}

// measure runs the phase.
func (p *phase) measure(ctx context.Context, opts options, d *driver, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	volumes := make([]*volume, warmUp+opts.volumes)
	for i := range volumes {
		name := fmt.Sprintf("bench-%s-%d-%d", p.pool, p.inflight, i)
		volumes[i] = newVolume(newClient(d.conn), opts, p.pool, name, dir)
		if err := volumes[i].prepare(); err != nil {
			return err
		}
	}
	if _, err := p.drive(ctx, volumes[:warmUp]); err != nil {
		return err
	}
	if err := p.watch(ctx, d.pid(), volumes[warmUp:]); err != nil {
		return err
	}
	return removeFolders(dir, volumes)
}

// watch drives the volumes and measures the resource usage of the driver's process.
func (p *phase) watch(ctx context.Context, pid int, volumes []*volume) error {
	if err := resetPeakMemory(pid); err != nil {
		return err
	}
	part := len(volumes)
	if p.floor != nil {
		part = (len(volumes) + turns - 1) / turns
	}
	for volumes := range slices.Chunk(volumes, part) {
		if p.floor != nil {
			if err := p.floor.measure(ctx); err != nil {
				return err
			}
		}
		if err := p.clock(ctx, pid, volumes); err != nil {
			return err
		}
	}
	var err error
	p.peak, err = peakMemory(pid)
	return err
}

// clock drives the volumes and adds their times.
func (p *phase) clock(ctx context.Context, pid int, volumes []*volume) error {
	before, err := cpuTime(pid)
	if err != nil {
		return err
	}
	begin := time.Now()
	timings, err := p.drive(ctx, volumes)
	if err != nil {
		return err
	}
	p.wall += time.Since(begin)
	p.timings = append(p.timings, timings...)
	after, err := cpuTime(pid)
	p.cpu += after - before
	return err
}

// drive takes the volumes through their lifecycles, with up to inflight at a time.
func (p *phase) drive(ctx context.Context, volumes []*volume) ([]timing, error) {
	timings := make([]timing, len(volumes))
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan int)
	group.Go(func() error {
		defer close(next)
		return repeat(ctx, len(volumes), func(i int) error {
			select {
			case next <- i:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	for range min(p.inflight, len(volumes)) {
		group.Go(func() (err error) {
			for i := range next {
				if timings[i], err = volumes[i].live(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return timings, group.Wait()
}

// removeFolders removes the directories of prepare. It fails if the driver has left anything in them, such as a target
// or a volume's file in a staging directory.
func removeFolders(dir string, volumes []*volume) error {
	for _, v := range volumes {
		for _, path := range []string{v.staging, filepath.Dir(v.target), filepath.Join(dir, v.name)} {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("the driver left something behind: %w", err)
			}
		}
	}
	return os.Remove(dir)
}
