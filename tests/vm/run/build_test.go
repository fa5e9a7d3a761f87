package main

import (
	"slices"
	"testing"
)

// TestSeed checks that only the suites with a flag for a seed get one: others would reject it.
func TestSeed(t *testing.T) {
	for dir, want := range map[string]bool{
		"../../../pkg/node": true, "../../../pkg/node/filesystem": true, "../../adversary": true,
		"../../../pkg/backends/nfs": true, "../../../pkg/loops": false, "../suites/nfs": false,
	} {
		if got := slices.Contains(options{seed: "17"}.arguments(suite{}, dir), "-seed=17"); got != want {
			t.Errorf("%s gets a seed: %t, want %t", dir, got, want)
		}
		if args := (options{}).arguments(suite{}, dir); slices.Contains(args, "-seed=") {
			t.Errorf("%s gets %q without a seed", dir, args)
		}
	}
}
