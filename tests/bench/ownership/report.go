package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// report prints the measurements. A ratio is the speed relative to the kubelet's method.
func (b *bench) report(out io.Writer) {
	fmt.Fprintf(out, "\n%s, %s: seconds (CPU seconds), and how many times as fast as the kubelet's method\n", b.fs,
		b.shape)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  method\tafter a mount, all to change\tin memory, all to change\tin memory, nothing to change")
	base := b.costs[0]
	for i, m := range b.methods {
		c := b.costs[i]
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", m.name, cell(c.cold, base.cold), cell(c.warm, base.warm),
			cell(c.again, base.again))
	}
	_ = table.Flush() // as with fmt.Fprintf, the error has no receiver
	last := b.costs[len(b.costs)-1]
	fmt.Fprintf(out, "  a second stage with OnRootMismatch, after a mount: %.3f ms\n",
		float64(last.mismatch.wall)/float64(time.Millisecond))
}

func cell(c, base cost) string {
	return fmt.Sprintf("%.2f (%.2f) x%.2f", c.wall.Seconds(), c.cpu.Seconds(), float64(base.wall)/float64(c.wall))
}
