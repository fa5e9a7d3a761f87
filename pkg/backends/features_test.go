package backends_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// whole has every optional interface, without implementations: Resolve calls none of them.
type whole struct {
	backends.Backend
	backends.NodeBackend
	backends.Attacher
	backends.Expander
	backends.Cloner
	backends.Modifier
	backends.Prover
	backends.Lister
	backends.CapacityReporter
	backends.HealthReporter
	backends.MachineReporter
	backends.Snapshotter
	backends.SnapshotLister
	backends.GroupSnapshotter
	backends.Topologist
	backends.Releaser
	backends.Limiter
	backends.Inspector
	backends.Locator
	backends.Meter
}

// TestResolveFindsEachFeature builds backends with one optional interface each.
func TestResolveFindsEachFeature(t *testing.T) {
	type (
		backend     = backends.Backend
		nodeBackend = backends.NodeBackend
	)
	for _, row := range []struct {
		name       string
		controller backends.Backend
		node       backends.NodeBackend
	}{
		{"attach", struct {
			backend
			backends.Attacher
		}{}, nil},
		{"expand", struct {
			backend
			backends.Expander
		}{}, nil},
		{"clone", struct {
			backend
			backends.Cloner
		}{}, nil},
		{"modify", struct {
			backend
			backends.Modifier
		}{}, nil},
		{"prove", struct {
			backend
			backends.Prover
		}{}, nil},
		{"list", struct {
			backend
			backends.Lister
		}{}, nil},
		{"capacity", struct {
			backend
			backends.CapacityReporter
		}{}, nil},
		{"health", struct {
			backend
			backends.HealthReporter
		}{}, nil},
		{"snapshot", struct {
			backend
			backends.Snapshotter
		}{}, nil},
		{"list-snapshots", struct {
			backend
			backends.SnapshotLister
		}{}, nil},
		{"group-snapshot", struct {
			backend
			backends.GroupSnapshotter
		}{}, nil},
		{"topology", struct {
			backend
			backends.Topologist
		}{}, nil},
		{"release", nil, struct {
			nodeBackend
			backends.Releaser
		}{}},
		{"limit", nil, struct {
			nodeBackend
			backends.Limiter
		}{}},
		{"inspect", nil, struct {
			nodeBackend
			backends.Inspector
		}{}},
		{"machines", struct {
			backend
			backends.MachineReporter
		}{}, nil},
		{"pools", struct {
			backend
			backends.PoolReporter
		}{}, nil},
		{"locate", nil, struct {
			nodeBackend
			backends.Locator
		}{}},
		{"measure", nil, struct {
			nodeBackend
			backends.Meter
		}{}},
	} {
		if have := backends.Resolve(row.controller, row.node).Names(); !slices.Equal(have, []string{row.name}) {
			t.Errorf("a backend with one feature resolves to %q, want %q", have, row.name)
		}
	}
}

func TestResolveTakesEitherSide(t *testing.T) {
	both := backends.Resolve(whole{}, whole{}).Names()
	controller, node := backends.Resolve(whole{}, nil).Names(), backends.Resolve(nil, whole{}).Names()
	if len(controller) != 13 || len(node) != 5 || !slices.Equal(both, slices.Concat(controller, node)) {
		t.Errorf("both sides resolve to %q, the controller to %q, the node to %q", both, controller, node)
	}
	if none := backends.Resolve(nil, nil).Names(); len(none) != 0 {
		t.Errorf("nothing resolves to %q", none)
	}
}

// lister lists one volume.
type lister struct{ backends.Backend }

func (lister) List(context.Context, backends.Page) ([]backends.Volume, string, error) {
	return []backends.Volume{{Handle: "v1"}}, "", nil
}

func TestADecoratorHidesFeatures(t *testing.T) {
	resolved := backends.Resolve(lister{}, nil)
	if decorated := struct{ backends.Backend }{lister{}}; backends.Resolve(decorated, nil).List != nil {
		t.Error("the decorator is a Lister: this test does not show what it should")
	}
	if volumes, _, err := resolved.List.List(t.Context(), backends.Page{}); len(volumes) != 1 || err != nil {
		t.Errorf("the feature that was resolved before returns %v, %v", volumes, err)
	}
}
