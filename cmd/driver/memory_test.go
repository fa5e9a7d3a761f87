package main

import (
	"runtime/debug"
	"testing"
)

func TestCollectLess(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for gogc, want := range map[string]int{"": heapGrowth, "50": 50, "off": 50} {
		debug.SetGCPercent(50) // the runtime's own setting for GOGC
		collectLess(gogc)
		if got := debug.SetGCPercent(50); got != want {
			t.Errorf("with GOGC=%q the heap grows by %d %%, want %d", gogc, got, want)
		}
	}
}
