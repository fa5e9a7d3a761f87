package nodestorage

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestBirthsAreBounded checks that the names of offers that are not written do not pile up, although each retry draws
// new ones.
func TestBirthsAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		turns int
		most  int
	}{
		"another master is first": {apierrors.NewConflict(schema.GroupResource{}, "node", errCut), 5, 0},
		"it is refused":           {apierrors.NewForbidden(schema.GroupResource{}, "node", errCut), 5, 0},
		"there is no answer":      {errCut, mostBirths/disks + 10, mostBirths + disks},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSimulation(t, 1, 0)
			s.settle(0, 2)
			s.report()
			inner := s.masters[0].write.(client.WithWatch)
			s.masters[0].write = interceptor.NewClient(inner, interceptor.Funcs{
				Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return c.err },
			})
			s.try(c.turns) //nolint:errcheck // It fails.
			if got := len(s.masters[0].births["node"]); got > c.most {
				t.Errorf("after %d turns %d names are remembered, want %d at most", c.turns, got, c.most)
			}
			s.masters[0].write = inner
			for range 2 {
				s.report()
				s.settle(0, 2)
			}
			if got := len(s.masters[0].births["node"]); got > 0 {
				t.Errorf("once all is written %d names are remembered, want none", got)
			}
			s.checkOffered()
		})
	}
}
