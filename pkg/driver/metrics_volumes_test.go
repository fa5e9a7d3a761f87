package driver

import (
	"context"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
)

// TestVolumesAreExported exports measurements, and one of a volume that cannot be a label. The scrape does not fail.
func TestVolumesAreExported(t *testing.T) {
	m := NewMetrics("d", "v")
	values := []backends.Measurement{{Name: "x_ops_total", Help: "x", Counter: true, Value: 1},
		{Name: "x_queue", Help: "x", Value: 2},
		{Name: "x_seconds", Help: "x", Value: 3, Count: 4, Buckets: map[float64]uint64{.1: 4}}}
	m.watchVolumes("i-1", func(ctx context.Context) []node.Measured {
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the scrape waits for ever")
		}
		return []node.Measured{{Volume: "a", Values: values}, {Volume: "\xff", Values: values}, {Volume: "b", Values: values}}
	})
	got := exported(t, m)
	for _, volume := range []string{"a", "b"} {
		for i, name := range []string{"ops_total", "queue", "seconds"} {
			series := name + " driver=d instance_id=i-1 volume_id=" + volume
			if got[series] != float64(i+1) {
				t.Errorf("%s is %g, want %d", series, got[series], i+1)
			}
		}
	}
	if len(got) != 6 {
		t.Errorf("exported %v, want 6 series", got)
	}
}
