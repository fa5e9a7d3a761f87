package ebs

import (
	"fmt"
	"strings"
	"testing"
)

// TestCodesAreBounded checks that no answer makes a label's value that Prometheus refuses, or any number of them.
func TestCodesAreBounded(t *testing.T) {
	var c codes
	b63 := strings.Repeat("b", 63)
	for code, want := range map[string]string{
		"": "NoAnswer", "InvalidVolume.NotFound": "InvalidVolume.NotFound", "UnknownError": "UnknownError",
		"\xff": "Other", "A\n": "Other", "a b": "Other", "A" + strings.Repeat("b", 64): "Other",
		"A": "Other", "Z9": "Z9", "a9": "Other", "9A": "Other", "A-b": "Other", "Ab\u00e9": "Other", "A" + b63: "A" + b63,
	} {
		if got := c.label(code); got != want {
			t.Errorf("%q counts as %q, want %q", code, got, want)
		}
	}
	values := map[string]bool{}
	for n := range 3 * mostCodes {
		values[c.label(fmt.Sprintf("Code%d", n))] = true
	}
	if len(values) > mostCodes {
		t.Errorf("%d codes have series, want at most %d", len(values), mostCodes)
	}
	if got := c.label("InvalidVolume.NotFound"); got != "InvalidVolume.NotFound" {
		t.Errorf("an early code counts as %q after many others", got)
	}
}

// TestLabelIsCheap checks that an answer without a proper code costs no memory. A failing service may send any number.
func TestLabelIsCheap(t *testing.T) {
	var c codes
	if allocations := testing.AllocsPerRun(100, func() { c.label("no code") }); allocations != 0 {
		t.Errorf("the label of a text that is no code took %v allocations, want none", allocations)
	}
}
