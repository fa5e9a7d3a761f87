package nodestorage

import (
	"context"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// stopAfterCreations has the first master stop for a long time after each creation.
func (s *simulation) stopAfterCreations() {
	now := time.Now()
	s.masters[0].now = func() time.Time { return now }
	inner := s.masters[0].write.(client.WithWatch)
	s.masters[0].write = interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			defer func() { now = now.Add(2 * freshFor) }()
			return c.Create(ctx, o, options...)
		},
	})
}

// TestNoCreationByAnOldView checks that a master that was stopped while it created PersistentVolumes reads the offers
// again before it creates the next: another master may have had the disks wiped, and offered them again.
func TestNoCreationByAnOldView(t *testing.T) {
	s := newSimulation(t, 1, 0)
	for range 2 {
		s.settle(0, 2)
		s.report()
	}
	s.stopAfterCreations()
	for turn := range disks {
		s.settle(0, 1)
		if got := len(s.all()); got != turn+1 {
			t.Fatalf("after %d turns there are %d PersistentVolumes, want one for each turn", turn+1, got)
		}
	}
	s.checkOffered()
}

// TestNoFenceByAnOldView checks the same of the objects that take the names before wipes: another master may have had
// the volumes wiped, and given their names up.
func TestNoFenceByAnOldView(t *testing.T) {
	s := newSimulation(t, 1, 0)
	s.offerAndLose()
	s.stopAfterCreations()
	for turn := range disks {
		s.settle(0, 1)
		if got := len(s.all()); got != turn+1 {
			t.Fatalf("after %d turns there are %d PersistentVolumes, want one for each turn", turn+1, got)
		}
	}
}
