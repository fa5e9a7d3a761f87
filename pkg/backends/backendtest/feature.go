package backendtest

import (
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// featureChecks compare the result of Resolve with the backend's behaviour.
func featureChecks() []check {
	return []check{
		{"those that build on each other come together", featuresComeTogether},
		{"whatever is offered works", func(w *world) { w.allWork(w.c) }},
		{"they are the same whenever it is opened", func(w *world) {
			if again := newWorld(w.TB, w.h); !slices.Equal(again.f.Names(), w.f.Names()) {
				w.Errorf("the second instance offers %q, the first one %q", again.f.Names(), w.f.Names())
			}
		}},
		{"resolved before, they survive a decorator", decorated},
	}
}

func featuresComeTogether(w *world) {
	if w.f.Snapshots != nil && w.f.Snapshot == nil {
		w.Errorf("a SnapshotLister that is no Snapshotter has nothing to list")
	}
	if w.f.Group != nil && w.f.Snapshot == nil {
		w.Errorf("a GroupSnapshotter that is no Snapshotter cannot restore what it takes")
	}
	if (w.f.Topologist != nil) != (w.f.Locate != nil) {
		w.Errorf("Topologist: %t, Locator: %t; a place needs both sides", w.f.Topologist != nil, w.f.Locate != nil)
	}
}

// decorated uses the features beside a decorator, which hides them.
func decorated(w *world) {
	controller, node := struct{ backends.Backend }{w.c}, struct{ backends.NodeBackend }{w.n}
	if names := backends.Resolve(controller, node).Names(); len(names) != 0 {
		w.Fatalf("the decorator does not hide %q", names)
	}
	w.allWork(controller)
}

// allWork calls every feature once for a volume that was created through the controller.
func (w *world) allWork(controller backends.Backend) {
	v, err := controller.Create(w.ctx(), w.spec("one"))
	w.must("Create", err)
	works := w.works(v)
	for _, name := range w.f.Names() {
		call, known := works[name]
		if !known {
			w.Errorf("the suite does not know the feature %q", name)
			continue
		}
		w.must(name, call())
	}
	w.leave(v.Handle)
	w.must("Delete", controller.Delete(w.ctx(), v.Handle))
}

// works returns calls that must succeed, by the feature's name.
func (w *world) works(v *backends.Volume) map[string]func() error {
	f, ctx := w.f, w.ctx()
	grown := backends.CapacityRange{RequiredBytes: 2 * v.CapacityBytes}
	return map[string]func() error{
		"attach": func() error { return second(f.Attach.Attach(ctx, w.attachRequest(v, w.node()))) },
		"expand": func() error { return second(f.Expand.Expand(ctx, v.Handle, grown)) },
		"clone": func() error {
			spec := w.spec("clone")
			spec.Capacity = grown
			return second(f.Clone.Clone(ctx, spec, v.Handle))
		},
		"modify": func() error { return f.Modify.Modify(ctx, v.Handle, w.h.Definition.NewMutable()) },
		"list":   func() error { return third(f.List.List(ctx, backends.Page{})) },
		"machines": func() error {
			return second(f.Machines.Machine(ctx, backends.MachineQuery{Node: w.node()}))
		},
		"pools": func() error { return second(f.Pools.Pools(ctx)) },
		"prove": func() error {
			if f.Prove.IsAbsent(ctx, w.onlyHere(v.Name)) {
				return backends.Errorf(backends.NotFound, "a volume that is there is proven absent")
			}
			return nil
		},
		"capacity": func() error { return second(f.Capacity.Capacity(ctx, w.capacityQuery())) },
		"health": func() error {
			if _, err := f.Health.Health(ctx, v.Handle); err != nil {
				return err
			}
			return third(f.Health.ListHealth(ctx, backends.Page{}))
		},
		"snapshot": func() error {
			return second(f.Snapshot.CreateSnapshot(ctx, w.snapshotSpec("snapshot", v.Handle)))
		},
		"list-snapshots": func() error { return third(f.Snapshots.ListSnapshots(ctx, "", backends.Page{})) },
		"group-snapshot": func() error { return second(f.Group.CreateGroup(ctx, w.groupSpec("group", v.Handle))) },
		"topology":       func() error { f.Topologist.TopologyKeys(); return nil },
		"release":        func() error { return f.Release.Release(ctx, v.Handle) },
		"limit":          func() error { return second(f.Limit.Limit(ctx)) },
		"inspect":        func() error { return second(f.Inspect.Inspect(ctx)) },
		"locate":         func() error { return second(f.Locate.Topology(ctx)) },
		"measure": func() error {
			if _, err := f.Measure.Measure(ctx, v.Handle, "/dev/null"); !backends.Is(err, backends.Unavailable) {
				return backends.Errorf(backends.Unknown, "another device was measured for the volume: %v", err)
			}
			return nil
		},
	}
}

func third[T, U any](_ T, _ U, err error) error { return err }
