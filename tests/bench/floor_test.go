package main

import (
	"testing"
	"time"
)

func TestFloorMeasuresEveryPart(t *testing.T) {
	needRoot(t)
	for pool, want := range map[string]int{directoryPool: 5, imagePool: 9} {
		opts := small(t, "")
		f := newFloor(opts, pool, opts.dir)
		for range 2 {
			if err := f.measure(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustBeEmpty(t, opts.dir)
		}
		if len(f.lines()) != want {
			t.Errorf("pool %s: %d parts, want %d", pool, len(f.lines()), want)
		}
		for _, l := range f.lines() {
			if len(l.part.took) < 2*imageRounds || l.part.median() <= 0 {
				t.Errorf("pool %s: %s: %d samples with a median of %s", pool, l.part.name, len(l.part.took), l.part.median())
			}
		}
	}
}

func TestFloorOfALifecycle(t *testing.T) {
	for pool, want := range map[string]time.Duration{directoryPool: 8 + 20 + 200 + 1000,
		imagePool: 11_111_000 + 8 + 10 + 100} {
		f := newFloor(options{fsType: "ext4"}, pool, "")
		for s, took := range map[*series]time.Duration{
			&f.call: 1, &f.folder: 10, &f.bindMount: 200, &f.bindTree: 100, &f.record: 1000,
			&f.imageFile: 10_000, &f.loop: 100_000, &f.mkfs: 1_000_000, &f.filesystem: 10_000_000,
		} {
			s.took = []time.Duration{took}
		}
		if got := f.lifecycle(); got != want {
			t.Errorf("pool %s: the floor is %d, want %d", pool, got, want)
		}
		f.bindMount.took[0] = 50
		if fast, slow := f.binds(); fast != &f.bindMount || slow != &f.bindTree {
			t.Error("the slower way to bind is counted")
		}
	}
}
