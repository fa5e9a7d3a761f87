package volume_test

import (
	"context"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/volume"
)

// refusing is a backend that creates nothing, and can prove it. With Exists, others have the name.
type refusing struct {
	backends.Backend
	backends.Snapshotter
	backends.GroupSnapshotter
	kind  backends.Kind
	asked *int // the number of requests for a proof
}

func (r refusing) refusal() error { return backends.Errorf(r.kind, "no") }

func (r refusing) Create(context.Context, backends.Spec) (*backends.Volume, error) {
	return nil, r.refusal()
}

func (r refusing) CreateSnapshot(context.Context, backends.SnapshotSpec) (*backends.Snapshot, error) {
	return nil, r.refusal()
}

func (r refusing) CreateGroup(context.Context, backends.GroupSpec) (*backends.Group, error) {
	return nil, r.refusal()
}

func (r refusing) Find(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	if r.kind == backends.Exists {
		return &backends.Volume{Fingerprint: "another's"}, nil
	}
	return r.Backend.Find(ctx, spec)
}

func (r refusing) FindSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	if r.kind == backends.Exists {
		return &backends.Snapshot{Volume: "another"}, nil
	}
	return r.Snapshotter.FindSnapshot(ctx, spec)
}

func (r refusing) FindGroup(ctx context.Context, name string) (*backends.Group, error) {
	if r.kind == backends.Exists {
		return &backends.Group{}, nil
	}
	return r.GroupSnapshotter.FindGroup(ctx, name)
}

func (r refusing) proof() bool { *r.asked++; return true }

func (r refusing) IsAbsent(context.Context, backends.Spec) bool { return r.proof() }

func (r refusing) IsSnapshotAbsent(context.Context, backends.SnapshotSpec) bool { return r.proof() }

func (r refusing) IsGroupAbsent(context.Context, backends.GroupSpec) bool { return r.proof() }

// A backend is asked for a proof only if the caller gets it and gives up the name because of it.
func TestProofsAreAskedForAfterRefusals(t *testing.T) {
	for kind, want := range map[backends.Kind]bool{
		backends.Invalid: true, backends.NotFound: true, backends.OutOfRange: true, backends.Exhausted: true,
		backends.InUse: true, backends.Unsupported: true, backends.Denied: true,
		backends.Busy: false, backends.Unavailable: false, backends.Unusable: false, backends.Unknown: false,
		backends.Exists: false,
	} {
		proofs := 0
		if want {
			proofs = 1
		}
		inside, asked := openMemory(t), 0
		f := backends.Resolve(inside.Controller, inside.Node)
		b := refusing{inside.Controller, f.Snapshot, f.Group, kind, &asked}
		s := volume.New(b, backends.Resolve(b, inside.Node), nil)
		for what, create := range map[string]func(ctx context.Context) error{
			"volume": func(ctx context.Context) error {
				_, err := s.Create(ctx, spec("a"), backends.ContentSource{})
				return err
			},
			"snapshot": func(ctx context.Context) error {
				_, err := s.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "a", Volume: "v"})
				return err
			},
			"group": func(ctx context.Context) error {
				_, err := s.CreateGroup(ctx, backends.GroupSpec{Name: "a", Volumes: []string{"v"}})
				return err
			},
		} {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			asked = 0
			if err := create(ended); err == nil || volume.IsAbsent(err) || asked != 0 {
				t.Errorf("a %s, %s, of a request that has ended: %v, and a proof was asked for %d times", what, kind, err, asked)
			}
			err := create(t.Context())
			if err == nil || volume.IsAbsent(err) != want || asked != proofs {
				t.Errorf("a %s, %s: %v, proven: %t, asked for %d times; want it proven: %t", what, kind, err,
					volume.IsAbsent(err), asked, want)
			}
		}
	}
}
