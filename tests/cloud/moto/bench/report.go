package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// series holds the durations of repeated measurements.
type series struct{ took []time.Duration }

func (s *series) add(took time.Duration) { s.took = append(s.took, took) }

func (s *series) time(f func() error) error {
	began := time.Now()
	err := f()
	s.add(time.Since(began))
	return err
}

// part returns the given percentile of the durations, by nearest rank.
func (s *series) part(percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(s.took))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*percent+99)/100, 1)-1]
}

func (s *series) median() time.Duration { return s.part(50) }

func (b *bench) report(out io.Writer) {
	what := "stowage"
	if b.endpoint != "" {
		what = "the driver on " + b.endpoint
	}
	fmt.Fprintf(out, "\n%s over moto, with %v added to each request. A bare look takes %v (median of %d).\n", what,
		b.delay, ms(b.floor.look.median()), len(b.floor.look.took))
	fmt.Fprintf(out, "\none volume after the other (%d), in ms\n", b.options.alone)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tmedian\tp95\tbare change\tneeded: look, change, look\ttimes that\trequests a volume\tof which\t")
	for _, phase := range phases() {
		r, needed := b.alone[phase], b.floor.needed(phase)
		fmt.Fprintf(w, "%s\t%v\t%v\t%v\t%v\t%.2f\t%.2f\t%s\t\n", phase, ms(r.median()), ms(r.part(95)),
			ms(b.floor.change[phase].median()), ms(needed),
			float64(r.median())/float64(needed), r.perVolume(), r.actions())
	}
	w.Flush()
	fmt.Fprintf(out, "\n%d volumes, %d in flight\n", b.volumes, b.inFlight)
	fmt.Fprintln(w, "\ta second\tbare changes a second\tof that\tmedian ms\tp95\trequests a volume\tof which\t")
	for _, phase := range phases() {
		r := b.many[phase]
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.2f\t%v\t%v\t%.2f\t%s\t\n", phase, r.rate(), b.floor.many[phase],
			r.rate()/b.floor.many[phase], ms(r.median()), ms(r.part(95)), r.perVolume(), r.actions())
	}
	w.Flush()
}

func ms(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d)/float64(time.Millisecond)) }

// rate returns the number of volumes a second.
func (r *result) rate() float64 { return float64(r.volumes) / r.took.Seconds() }

// perVolume returns the number of requests for each volume.
func (r *result) perVolume() float64 {
	n := 0
	for _, calls := range r.calls {
		n += calls
	}
	return float64(n) / float64(r.volumes)
}

func (r *result) actions() string {
	var texts []string
	for _, action := range slices.Sorted(maps.Keys(r.calls)) {
		texts = append(texts, fmt.Sprintf("%s %d", action, r.calls[action]))
	}
	return strings.Join(texts, ", ")
}
