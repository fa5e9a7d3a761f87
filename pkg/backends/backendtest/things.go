package backendtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// thing is a volume, a snapshot or a group.
type thing struct {
	handle string
	value  any // compared with reflect.DeepEqual
}

// things is one kind of thing, with one way to create it. All named things are created, found and deleted with the same
// promises.
type things struct {
	create func(ctx context.Context, name string) (thing, error)
	// others are other ways to request a name. If the name is taken, all of them must fail.
	others map[string]func(ctx context.Context, name string) error
	find   func(ctx context.Context, name string) (thing, error)
	get    func(ctx context.Context, handle string) (thing, error)
	delete func(ctx context.Context, handle string) error
	list   func(ctx context.Context, page backends.Page) ([]thing, string, error) // nil when not offered
	// usable checks that the thing is complete.
	usable func(t thing)
}

// errNothing is the error for a call that returned nil for both results.
var errNothing = errors.New("the call returned neither a value nor an error")

func volumeThing(v *backends.Volume, err error) (thing, error) {
	if err != nil {
		return thing{}, err
	}
	if v == nil {
		return thing{}, errNothing
	}
	return thing{v.Handle, v}, nil
}

func snapshotThing(s *backends.Snapshot, err error) (thing, error) {
	if err != nil {
		return thing{}, err
	}
	if s == nil {
		return thing{}, errNothing
	}
	return thing{s.Handle, settledSnapshot(*s)}, nil
}

func groupThing(g *backends.Group, err error) (thing, error) {
	if err != nil {
		return thing{}, err
	}
	if g == nil {
		return thing{}, errNothing
	}
	settled := *g
	settled.Snapshots = nil
	for _, s := range g.Snapshots {
		settled.Snapshots = append(settled.Snapshots, settledSnapshot(s))
	}
	return thing{g.Handle, settled}, nil
}

// settledSnapshot returns the snapshot as it is once it is ready, with its time in UTC.
func settledSnapshot(s backends.Snapshot) backends.Snapshot {
	s.Ready = true
	s.CreatedAt = s.CreatedAt.UTC()
	return s
}

// volumes are empty volumes.
func volumes(w *world) things {
	create := func(ctx context.Context, spec backends.Spec) (*backends.Volume, error) { return w.c.Create(ctx, spec) }
	t := volumeThings(w, create)
	if w.f.Clone != nil {
		t.others["as a clone of a missing volume"] = func(ctx context.Context, name string) error {
			return second(w.f.Clone.Clone(ctx, w.spec(name), "missing"))
		}
	}
	if w.f.Snapshot != nil {
		t.others["from a missing snapshot"] = func(ctx context.Context, name string) error {
			return second(w.f.Snapshot.Restore(ctx, w.spec(name), "missing"))
		}
	}
	return t
}

// clones are clones of a volume that is not among them.
func clones(w *world) things {
	source := w.volume("source of clones").Handle
	t := volumeThings(w, func(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
		return w.f.Clone.Clone(ctx, spec, source)
	})
	t.others["of a missing volume"] = func(ctx context.Context, name string) error {
		return second(w.f.Clone.Clone(ctx, w.spec(name), "missing"))
	}
	t.others["empty"] = func(ctx context.Context, name string) error { return second(w.c.Create(ctx, w.spec(name))) }
	return t
}

// restores are volumes that are restored from a snapshot.
func restores(w *world) things {
	source := w.snapshot("source of restores", w.volume("source of the snapshot").Handle).Handle
	t := volumeThings(w, func(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
		return w.f.Snapshot.Restore(ctx, spec, source)
	})
	t.others["from a missing snapshot"] = func(ctx context.Context, name string) error {
		return second(w.f.Snapshot.Restore(ctx, w.spec(name), "missing"))
	}
	t.others["empty"] = func(ctx context.Context, name string) error { return second(w.c.Create(ctx, w.spec(name))) }
	return t
}

func second[T any](_ T, err error) error { return err }

func volumeThings(w *world, create func(context.Context, backends.Spec) (*backends.Volume, error)) things {
	t := things{
		create: func(ctx context.Context, name string) (thing, error) { return volumeThing(create(ctx, w.spec(name))) },
		find:   func(ctx context.Context, name string) (thing, error) { return volumeThing(w.c.Find(ctx, w.spec(name))) },
		get:    func(ctx context.Context, handle string) (thing, error) { return volumeThing(w.c.Get(ctx, handle)) },
		delete: func(ctx context.Context, handle string) error { return w.c.Delete(ctx, handle) },
		usable: func(t thing) { w.usableVolume(t.handle) },
	}
	t.others = map[string]func(ctx context.Context, name string) error{}
	for what, change := range changes() {
		t.others[what] = func(ctx context.Context, name string) error {
			spec := w.spec(name)
			change(&spec)
			return second(create(ctx, spec))
		}
	}
	if w.f.List != nil {
		t.list = func(ctx context.Context, page backends.Page) ([]thing, string, error) {
			list, next, err := w.f.List.List(ctx, page)
			return thingsOf(list, func(v *backends.Volume) (thing, error) { return volumeThing(v, nil) }), next, err
		}
	}
	return t
}

// changes make a spec differ from an earlier one.
func changes() map[string]func(*backends.Spec) {
	return map[string]func(*backends.Spec){
		"with another fingerprint": func(s *backends.Spec) { s.Fingerprint += ", another" },
		"with more capacity":       func(s *backends.Spec) { s.Capacity.RequiredBytes++ },
		"with a capacity that cannot be": func(s *backends.Spec) {
			s.Capacity = backends.CapacityRange{RequiredBytes: 2, LimitBytes: 1}
		},
	}
}

func thingsOf[T any](list []T, convert func(*T) (thing, error)) []thing {
	var result []thing
	for i := range list {
		t, err := convert(&list[i])
		if err != nil {
			panic(fmt.Sprintf("an entry of a list cannot be converted: %v", err))
		}
		result = append(result, t)
	}
	return result
}

// snapshots are snapshots of one volume.
func snapshots(w *world) things {
	source := w.volume("source of snapshots").Handle
	other := w.volume("another source of snapshots").Handle
	create := func(ctx context.Context, name, volume string) (*backends.Snapshot, error) {
		return w.f.Snapshot.CreateSnapshot(ctx, w.snapshotSpec(name, volume))
	}
	t := things{
		create: func(ctx context.Context, name string) (thing, error) { return snapshotThing(create(ctx, name, source)) },
		others: map[string]func(ctx context.Context, name string) error{
			"of another volume": func(ctx context.Context, name string) error { return second(create(ctx, name, other)) },
			"of a missing volume": func(ctx context.Context, name string) error {
				return second(create(ctx, name, "missing"))
			},
		},
		find: func(ctx context.Context, name string) (thing, error) {
			return snapshotThing(w.f.Snapshot.FindSnapshot(ctx, w.snapshotSpec(name, source)))
		},
		get: func(ctx context.Context, handle string) (thing, error) {
			return snapshotThing(w.f.Snapshot.GetSnapshot(ctx, handle))
		},
		delete: func(ctx context.Context, handle string) error { return w.f.Snapshot.DeleteSnapshot(ctx, handle) },
		usable: func(t thing) { w.usableSnapshot(t.handle) },
	}
	if w.f.Snapshots != nil {
		t.list = func(ctx context.Context, page backends.Page) ([]thing, string, error) {
			list, next, err := w.f.Snapshots.ListSnapshots(ctx, "", page)
			return thingsOf(list, func(s *backends.Snapshot) (thing, error) { return snapshotThing(s, nil) }), next, err
		}
	}
	return t
}

// snapshotGroups are groups of two volumes. They cannot be listed.
func snapshotGroups(w *world) things {
	one, two := w.volume("first source of groups").Handle, w.volume("second source of groups").Handle
	create := func(ctx context.Context, name string, volumes ...string) (*backends.Group, error) {
		return w.f.Group.CreateGroup(ctx, w.groupSpec(name, volumes...))
	}
	return things{
		create: func(ctx context.Context, name string) (thing, error) { return groupThing(create(ctx, name, one, two)) },
		others: map[string]func(ctx context.Context, name string) error{
			"of other volumes": func(ctx context.Context, name string) error { return second(create(ctx, name, two)) },
			"of a missing volume": func(ctx context.Context, name string) error {
				return second(create(ctx, name, "missing"))
			},
			"with another fingerprint": func(ctx context.Context, name string) error {
				spec := w.groupSpec(name, one, two)
				spec.Fingerprint += ", another"
				return second(w.f.Group.CreateGroup(ctx, spec))
			},
		},
		find: func(ctx context.Context, name string) (thing, error) {
			return groupThing(w.f.Group.FindGroup(ctx, name))
		},
		get: func(ctx context.Context, handle string) (thing, error) {
			return groupThing(w.f.Group.GetGroup(ctx, handle))
		},
		delete: func(ctx context.Context, handle string) error { return w.f.Group.DeleteGroup(ctx, handle) },
		usable: func(t thing) {
			g, err := w.f.Group.GetGroup(w.ctx(), t.handle)
			w.must("GetGroup", err)
			for _, s := range g.Snapshots {
				w.usableSnapshot(s.Handle)
			}
		},
	}
}
