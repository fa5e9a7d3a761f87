package attach

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// TestWaitIsTold makes a caller leave while its request waits for its turn. The caller hears for what it waits.
func TestWaitIsTold(t *testing.T) {
	for name, row := range map[string]struct {
		arrange func(ctx context.Context, m *Machine) error
		want    string
	}{
		"for a lost detachment": {func(_ context.Context, m *Machine) error {
			m.ended.note("v", "one")
			m.ended.lose("v", "one")
			return nil
		}, "which may still arrive"},
		"for a slot": {func(ctx context.Context, m *Machine) error {
			for range m.options.PerNode {
				if _, err := m.attaching.take(ctx, "one"); err != nil {
					return err
				}
			}
			return nil
		}, `too much is under way on node "one"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(1)
				s.add("v", false)
				m := machine(s)
				if err := row.arrange(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				err := within(t, 2*time.Second, func(ctx context.Context) error {
					_, err := m.Attach(ctx, Request{Volume: "v", Node: "one"})
					return err
				})
				if !failure.Is(err, failure.Busy) || !strings.Contains(err.Error(), row.want) {
					t.Errorf("got %v, want Busy because of %q", err, row.want)
				}
			})
		})
	}
}
