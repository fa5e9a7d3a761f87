package main

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// report prints the measurements.
func report(out io.Writer, opts options, phases []*phase) error {
	if err := reportMachine(out, opts); err != nil {
		return err
	}
	reportThroughput(out, opts, phases)
	reportRPCs(out, phases)
	for _, pool := range opts.pools {
		reportFloor(out, first(phases, pool))
	}
	return nil
}

// first returns the pool's first phase.
func first(phases []*phase, pool string) *phase {
	for _, p := range phases {
		if p.pool == pool {
			return p
		}
	}
	return nil
}

func reportMachine(out io.Writer, opts options) error {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d CPUs, Linux %s; volumes of %s, %d a phase, image filesystem %s\n",
		runtime.NumCPU(), unix.ByteSliceToString(name.Release[:]), opts.size, opts.volumes, opts.fsType)
	return nil
}

func micros(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d)/float64(time.Microsecond)) }

func reportThroughput(out io.Writer, opts options, phases []*phase) {
	t := newTable("Lifecycles of eight RPCs (CPU: the driver and the commands that it runs, without kernel threads)",
		"lrrrrr")
	t.row("pool", "in flight", "lifecycles/s", fmt.Sprintf("ratio to %d in flight", opts.inflight[0]), "CPU ms/volume",
		"peak RSS MiB")
	for _, p := range phases {
		t.row(p.pool, p.inflight, fmt.Sprintf("%.1f", p.throughput()),
			fmt.Sprintf("%.2f", p.throughput()/first(phases, p.pool).throughput()),
			fmt.Sprintf("%.2f", float64(p.cpuPerVolume())/float64(time.Millisecond)),
			fmt.Sprintf("%.1f", float64(p.peak)/(1<<20)))
	}
	t.print(out)
}

func reportRPCs(out io.Writer, phases []*phase) {
	for _, p := range phases {
		t := newTable(fmt.Sprintf("Pool %s, %d in flight, in microseconds", p.pool, p.inflight), "lrrr")
		t.row("RPC", "p50", "p95", "p99")
		all := make([]series, 0, rpcs+1)
		for i := range rpcs {
			all = append(all, p.rpc(i))
		}
		for _, s := range append(all, p.lifecycle()) {
			t.row(s.name, micros(s.median()), micros(s.percentile(95)), micros(s.percentile(99)))
		}
		t.print(out)
	}
}

// reportFloor compares the median of the phase's lifecycle with the sum of the medians of its necessary parts.
func reportFloor(out io.Writer, p *phase) {
	t := newTable(fmt.Sprintf("The floor of a lifecycle in pool %s, in microseconds", p.pool), "rlrrrrrl")
	t.row("times", "part", "p50", "p95", "p99", "samples", "times p50", "for")
	for _, l := range p.floor.lines() {
		s := l.part
		t.row(l.count, s.name, micros(s.median()), micros(s.percentile(95)), micros(s.percentile(99)), len(s.took),
			micros(l.cost()), l.what)
	}
	t.row("", "the floor", "", "", "", "", micros(p.floor.lifecycle()), "")
	t.print(out)
	s := p.lifecycle()
	fmt.Fprintf(out, "\nPool %s with %d in flight: a lifecycle takes %s microseconds (median); measured/floor = %.2f\n",
		p.pool, p.inflight, micros(s.median()), float64(s.median())/float64(p.floor.lifecycle()))
}
