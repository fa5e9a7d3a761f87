package main

import (
	"slices"
	"testing"
)

// TestNamedSuites checks that a command that repeats a failed test, by package and test, runs it with the same flags.
func TestNamedSuites(t *testing.T) {
	for _, row := range []struct {
		pkg, match string
		want       []string // the patterns of the suites
		args       []string // of the first
	}{
		{"./pkg/node", "^TestChurn$", []string{"^TestChurn$"}, []string{"-churn=20s"}},
		{"./pkg/node", "^TestChurn$/^2$", []string{"^TestChurn$"}, []string{"-churn=20s"}},
		{"./pkg/node", "", []string{"^TestGrowsOnStage$", "^TestChurn$"}, nil},
		{"./pkg/node", "^TestOther$", []string{"^TestGrowsOnStage$"}, nil},
		{"./tests/sanity", "^TestSanity$", []string{""}, []string{"-only=nfs", "-nfsd"}},
		{"./pkg/tree", "^TestRemove$", []string{""}, nil},
	} {
		all := named(row.pkg, row.match)
		var got []string
		for _, s := range all {
			got = append(got, s.match)
		}
		if !slices.Equal(got, row.want) || !slices.Equal(all[0].args, row.args) || all[0].pkg != row.pkg {
			t.Errorf("%s with %q: %+v, want the suites of %q with the flags %q", row.pkg, row.match, all, row.want, row.args)
		}
	}
}
