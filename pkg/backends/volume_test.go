package backends_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func TestCapacityRangeContains(t *testing.T) {
	for _, row := range []struct {
		r    backends.CapacityRange
		size int64
		want bool
	}{
		{backends.CapacityRange{}, 0, true},
		{backends.CapacityRange{}, math.MaxInt64, true},
		{backends.CapacityRange{RequiredBytes: 10}, 9, false},
		{backends.CapacityRange{RequiredBytes: 10}, 10, true},
		{backends.CapacityRange{LimitBytes: 10}, 10, true},
		{backends.CapacityRange{LimitBytes: 10}, 11, false},
		{backends.CapacityRange{RequiredBytes: 10, LimitBytes: 10}, 10, true},
		{backends.CapacityRange{RequiredBytes: 11, LimitBytes: 10}, 10, false},
		{backends.CapacityRange{RequiredBytes: 11, LimitBytes: 10}, 11, false},
	} {
		if have := row.r.Contains(row.size); have != row.want {
			t.Errorf("%s contains %d: %t, want %t", row.r, row.size, have, row.want)
		}
	}
}

func TestCapacityRangeString(t *testing.T) {
	for want, r := range map[string]backends.CapacityRange{
		"at least 0 bytes":  {},
		"at least 10 bytes": {RequiredBytes: 10},
		"0 to 20 bytes":     {LimitBytes: 20},
		"10 to 20 bytes":    {RequiredBytes: 10, LimitBytes: 20},
	} {
		if have := r.String(); have != want {
			t.Errorf("the range is %q, want %q", have, want)
		}
	}
}

func TestCapacityRangeRound(t *testing.T) {
	const preferred, least, step = 100, 20, 10
	const impossible = -1
	for _, row := range []struct {
		name string
		r    backends.CapacityRange
		want int64
	}{
		{"anything", backends.CapacityRange{}, 100},
		{"a multiple", backends.CapacityRange{RequiredBytes: 40}, 40},
		{"rounded up", backends.CapacityRange{RequiredBytes: 41}, 50},
		{"rounded up to the limit", backends.CapacityRange{RequiredBytes: 41, LimitBytes: 50}, 50},
		{"rounded up over the limit", backends.CapacityRange{RequiredBytes: 41, LimitBytes: 49}, impossible},
		{"exactly", backends.CapacityRange{RequiredBytes: 50, LimitBytes: 50}, 50},
		{"less than the least", backends.CapacityRange{RequiredBytes: 1}, 20},
		{"less than the least, limited", backends.CapacityRange{RequiredBytes: 1, LimitBytes: 19}, impossible},
		{"a limit under the preferred size", backends.CapacityRange{LimitBytes: 60}, 60},
		{"a limit that is no multiple", backends.CapacityRange{LimitBytes: 65}, 60},
		{"a limit over the preferred size", backends.CapacityRange{LimitBytes: 200}, 100},
		{"a limit under the least", backends.CapacityRange{LimitBytes: 19}, impossible},
		{"a limit under what is required", backends.CapacityRange{RequiredBytes: 50, LimitBytes: 40}, impossible},
		{"the largest number", backends.CapacityRange{RequiredBytes: math.MaxInt64}, impossible},
		{"the largest multiple", backends.CapacityRange{RequiredBytes: math.MaxInt64 - 7}, math.MaxInt64 - 7},
		{"over the largest multiple", backends.CapacityRange{RequiredBytes: math.MaxInt64 - 6}, impossible},
	} {
		have, err := row.r.Round(preferred, least, step)
		switch {
		case row.want == impossible && !backends.Is(err, backends.OutOfRange):
			t.Errorf("%s: got %d, %v; want OutOfRange", row.name, have, err)
		case row.want != impossible && (err != nil || have != row.want):
			t.Errorf("%s: got %d, %v; want %d", row.name, have, err, row.want)
		}
	}
}

// FuzzCapacityRangeRound looks for a size that Round must not return, and for a smaller one that it missed.
func FuzzCapacityRangeRound(f *testing.F) {
	f.Add(int64(0), int64(0), int64(1<<30), int64(1<<20), int64(1<<20))
	f.Add(int64(math.MaxInt64), int64(0), int64(1), int64(1), int64(4096))
	f.Add(int64(5), int64(7), int64(100), int64(3), int64(4))
	f.Fuzz(func(t *testing.T, required, limit, preferred, least, step int64) {
		if required < 0 || limit < 0 || preferred < 1 || least < 1 || step < 1 {
			return // A caller must not pass these.
		}
		r := backends.CapacityRange{RequiredBytes: required, LimitBytes: limit}
		size, err := r.Round(preferred, least, step)
		if err != nil {
			if !backends.Is(err, backends.OutOfRange) || size != 0 {
				t.Fatalf("got %d, %v; want 0 and OutOfRange", size, err)
			}
			return
		}
		if !r.Contains(size) || size < least || size%step != 0 {
			t.Fatalf("%d is not in %s, or less than %d, or no multiple of %d", size, r, least, step)
		}
		if smaller := size - step; required > 0 && smaller >= least && r.Contains(smaller) {
			t.Fatalf("got %d, but %d is in %s too", size, smaller, r)
		}
	})
}

func TestAccessCheck(t *testing.T) {
	offered := backends.Access{
		Types: []backends.AccessType{backends.Mount},
		Modes: []backends.AccessMode{backends.SingleNodeWriter, backends.MultiNodeReaderOnly},
	}
	for _, row := range []struct {
		name string
		want backends.Access
		ok   bool
	}{
		{"nothing", backends.Access{}, true},
		{"all that is offered", offered, true},
		{"another type", backends.Access{Types: []backends.AccessType{backends.Block}}, false},
		{"another mode", backends.Access{Modes: []backends.AccessMode{backends.MultiNodeMultiWriter}}, false},
		{"one that is and one that is not", backends.Access{Types: []backends.AccessType{backends.Mount, backends.Block}},
			false},
	} {
		err := offered.Check(row.want)
		if row.ok && err != nil || !row.ok && !backends.Is(err, backends.Invalid) {
			t.Errorf("%s: got %v, want success: %t", row.name, err, row.ok)
		}
	}
	want := `access mode MULTI_NODE_MULTI_WRITER is not supported: use SINGLE_NODE_WRITER or MULTI_NODE_READER_ONLY`
	if err := offered.Check(backends.Access{Modes: []backends.AccessMode{backends.MultiNodeMultiWriter}}); fmt.Sprint(
		err) != want {
		t.Errorf("the refusal is %q, want %q", err, want)
	}
}

func TestSingleNodeModesIsACopy(t *testing.T) {
	backends.SingleNodeModes()[0] = "scribbled"
	for _, mode := range []backends.AccessMode{backends.SingleNodeWriter, backends.SingleNodeReaderOnly,
		backends.SingleNodeSingleWriter, backends.SingleNodeMultiWriter} {
		if !slices.Contains(backends.SingleNodeModes(), mode) {
			t.Errorf("%s is no single-node mode", mode)
		}
	}
	for _, mode := range []backends.AccessMode{backends.MultiNodeReaderOnly, backends.MultiNodeSingleWriter,
		backends.MultiNodeMultiWriter} {
		if slices.Contains(backends.SingleNodeModes(), mode) {
			t.Errorf("%s is a single-node mode", mode)
		}
	}
}
