package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := series{}
	for i := range 100 {
		hundred.took = append(hundred.took, time.Duration(100-i))
	}
	for _, c := range []struct {
		s    series
		p    float64
		want time.Duration
	}{
		{hundred, 50, 50}, {hundred, 95, 95}, {hundred, 99, 99}, {hundred, 100, 100}, {hundred, 0, 1}, {hundred, 0.5, 1},
		{series{took: []time.Duration{3, 1, 2}}, 50, 2}, {series{took: []time.Duration{7}}, 99, 7}, {series{}, 50, 0},
	} {
		if got := c.s.percentile(c.p); got != c.want {
			t.Errorf("p%g of %v = %d, want %d", c.p, c.s.took, got, c.want)
		}
	}
	if hundred.took[0] != 100 {
		t.Error("percentile sorts the series itself")
	}
}

func TestSeriesDoesNotCountFailures(t *testing.T) {
	var s series
	failure := errors.New("failed")
	if err := s.time(func() error { return failure }); !errors.Is(err, failure) || len(s.took) != 0 {
		t.Errorf("error %v and %d samples", err, len(s.took))
	}
	if err := s.time(func() error { return nil }); err != nil || len(s.took) != 1 {
		t.Errorf("error %v and %d samples", err, len(s.took))
	}
}

func TestParseCPUTime(t *testing.T) {
	stat := "12 (a) R (b)) S 1 12 12 0 -1 4194560 1500 90 3 0 11 22 33 44 20 0 9 0 100 200 300\n"
	got, err := parseCPUTime([]byte(stat))
	if want := 1100 * time.Millisecond; err != nil || got != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	for _, broken := range []string{"", "12 (a) S 1", strings.Replace(stat, "22", "x", 1)} {
		if _, err := parseCPUTime([]byte(broken)); err == nil {
			t.Errorf("%q is understood", broken)
		}
	}
}

func TestParsePeakMemory(t *testing.T) {
	got, err := parsePeakMemory("Name:\tx\nVmPeak:\t 999 kB\nVmHWM:\t   20480 kB\n")
	if err != nil || got != 20<<20 {
		t.Errorf("got %d, %v; want 20 MiB", got, err)
	}
	for _, broken := range []string{"Name:\tx\n", "VmHWM:\tmany kB\n"} {
		if _, err := parsePeakMemory(broken); err == nil {
			t.Errorf("%q is understood", broken)
		}
	}
}

func TestProcessNumbersAreReal(t *testing.T) {
	pid := os.Getpid()
	if err := resetPeakMemory(pid); err != nil {
		t.Fatal(err)
	}
	before, err := peakMemory(pid)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = byte(i >> 12)
	}
	after, err := peakMemory(pid)
	if err != nil || after-before < 32<<20 {
		t.Errorf("the peak went from %d to %d (%v) when %d bytes were used", before, after, err, len(block))
	}
	if used, err := cpuTime(pid); err != nil || used < 0 {
		t.Errorf("CPU time %s, %v", used, err)
	}
	if _, err := cpuTime(-1); err == nil {
		t.Error("there is a process -1")
	}
}

func TestOptions(t *testing.T) {
	opts, err := parseOptions([]string{"-pools", "image", "-inflight", "2,64", "-volumes", "64", "-fstype", "xfs", "-size",
		"300Mi"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(opts.pools, []string{"image"}) || !slices.Equal(opts.inflight, []int{2, 64}) || opts.size != 300<<20 {
		t.Errorf("got %+v", opts)
	}
	for _, args := range [][]string{
		{"-pools", "tape"}, {"-pools", ""}, {"-pools", "image,image"}, {"-inflight", "0"}, {"-inflight", "1,,2"},
		{"-volumes", "31"},
		{"-fstype", "fat"}, {"-size", "-1"}, {"stray"}, {"-unknown"},
	} {
		if _, err := parseOptions(args, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

func TestTableAligns(t *testing.T) {
	var out strings.Builder
	table := newTable("Title", "lrl")
	table.row("name", "n", "note")
	table.row("ä", 1000, "")
	table.print(&out)
	if want := "\nTitle\n  name     n  note\n  ä     1000\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
