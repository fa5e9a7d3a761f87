package backendtest

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/memory"
)

// right returns the harness of a backend that keeps its promises.
func right() Harness {
	h := Over(memory.Definition(), func(_ testing.TB, o *backends.Options) {
		*o.Config.(*memory.Config) = memory.Config{CapacityBytes: 1 << 32, MaxVolumesPerNode: 3, Nodes: []string{"node-b"},
			Zone: "here"}
	})
	// No state of memory outlives an instance, so an instance is its own successor.
	h.Reopen = func(_ testing.TB, instance *backends.Instance) *backends.Instance { return instance }
	h.Reserves = true
	h.Nodes = []string{"node-a", "node-b"}
	h.Secrets = []string{"pa55word"}
	h.Spec = func(name string) backends.Spec {
		return backends.Spec{
			Name:       name,
			Capacity:   backends.CapacityRange{RequiredBytes: 4 << 20},
			Parameters: &memory.Parameters{Tier: "hot"},
			Access: backends.Access{
				Types: []backends.AccessType{backends.Mount, backends.Block},
				Modes: []backends.AccessMode{backends.SingleNodeWriter, backends.MultiNodeMultiWriter},
			},
		}
	}
	kib := 256
	h.Modifications = []Modification{{
		Value: &memory.Mutable{ReadAheadKiB: &kib},
		Seen: func(tb testing.TB, instance *backends.Instance, handle string) bool {
			return image(tb, instance, handle).ReadAheadKiB == kib
		},
	}}
	h.Damage = func(tb testing.TB, instance *backends.Instance, handle string) {
		if err := os.Remove(image(tb, instance, handle).Path); err != nil {
			tb.Fatal(err)
		}
	}
	h.Broken = map[backends.Kind]func(testing.TB, *backends.Instance) error{
		backends.OutOfRange: func(tb testing.TB, instance *backends.Instance) error {
			spec := h.Spec("more than all the storage")
			spec.Capacity.RequiredBytes = 1 << 33
			return second(instance.Controller.Create(tb.Context(), spec))
		},
	}
	return h
}

func image(tb testing.TB, instance *backends.Instance, handle string) backends.Device {
	tb.Helper()
	source, err := instance.Node.Source(tb.Context(), backends.Attachment{Handle: handle, Type: backends.Block})
	if err != nil {
		tb.Fatal(err)
	}
	return source.(backends.Device)
}

func TestRunOverARightBackend(t *testing.T) {
	Run(t, right())
}

// bare hides all optional interfaces. Without its Releaser, Source must note no use.
type bare struct {
	backends.Backend
	backends.NodeBackend
	release backends.Releaser
}

func (b bare) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	source, err := b.NodeBackend.Source(ctx, attachment)
	if err != nil {
		return nil, err
	}
	return source, b.release.Release(ctx, attachment.Handle)
}

// Create returns no topology, which means nothing without a Topologist.
func (b bare) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	return placeless(b.Backend.Create(ctx, spec))
}

func (b bare) Find(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	return placeless(b.Backend.Find(ctx, spec))
}

func (b bare) Get(ctx context.Context, handle string) (*backends.Volume, error) {
	return placeless(b.Backend.Get(ctx, handle))
}

func placeless(v *backends.Volume, err error) (*backends.Volume, error) {
	if v != nil {
		v.Topology = nil
	}
	return v, err
}

func TestRunOverABareBackend(t *testing.T) {
	h := right()
	h.Definition.NewMutable = nil
	h.Modifications, h.Nodes, h.Broken = nil, nil, nil
	inside := h.Open
	h.Open = func(tb testing.TB) *backends.Instance {
		i := inside(tb)
		release := i.Node.(backends.Releaser) // A backend of directories and images must be a Releaser.
		return &backends.Instance{
			Controller: struct{ backends.Backend }{bare{i.Controller, i.Node, release}},
			Node: struct {
				backends.NodeBackend
				backends.Releaser
			}{i.Node, release},
		}
	}
	Run(t, h)
}

// TestRunWithContentHooks shows that a backend can bring its own way of writing to a volume.
func TestRunWithContentHooks(t *testing.T) {
	h := right()
	written := 0
	path := func(tb testing.TB, instance *backends.Instance, attachment backends.Attachment) string {
		attachment.Type = backends.Mount
		source, err := instance.Node.Source(tb.Context(), attachment)
		if err != nil {
			tb.Fatal(err)
		}
		return filepath.Join(source.(backends.Directory).Path, "text")
	}
	h.Write = func(tb testing.TB, instance *backends.Instance, attachment backends.Attachment, data []byte) {
		written++
		if err := os.WriteFile(path(tb, instance, attachment), data, 0o600); err != nil {
			tb.Error(err)
		}
	}
	h.Read = func(tb testing.TB, instance *backends.Instance, attachment backends.Attachment) []byte {
		data, err := os.ReadFile(path(tb, instance, attachment))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			tb.Error(err)
		}
		return data
	}
	for _, c := range append(cloneChecks(), append(snapshotChecks(), deleteChecks()...)...) {
		t.Run(c.name, func(t *testing.T) { c.run(newWorld(t, h)) })
	}
	if written == 0 {
		t.Error("the hook Write was not called")
	}
}

func TestRunRefusesAHarnessThatIsNotWhole(t *testing.T) {
	for name, spoil := range map[string]func(h *Harness){
		"no Open":       func(h *Harness) { h.Open = nil },
		"no Spec":       func(h *Harness) { h.Spec = nil },
		"no Definition": func(h *Harness) { h.Definition = backends.Definition{} },
		"Write and no Read": func(h *Harness) {
			h.Write = func(testing.TB, *backends.Instance, backends.Attachment, []byte) {}
		},
		"no second node": func(h *Harness) { h.Nodes = h.Nodes[:1] },
		"no node side": func(h *Harness) {
			inside := h.Open
			h.Open = func(tb testing.TB) *backends.Instance { return &backends.Instance{Controller: inside(tb).Controller} }
		},
	} {
		h := right()
		spoil(&h)
		r := &recorder{TB: t}
		r.run(func() {
			h.check(r)
			features(r, h)
		})
		for _, clean := range slices.Backward(r.cleanups) {
			r.run(clean)
		}
		if !r.Failed() {
			t.Errorf("%s: the harness was accepted", name)
		}
	}
}

// TestEveryCheckHasItsOwnName checks that subtests cannot be confused.
func TestEveryCheckHasItsOwnName(t *testing.T) {
	h := right()
	for _, g := range groups(h, features(t, h)) {
		names := map[string]bool{}
		for _, c := range g.checks {
			names[c.name] = true
		}
		if len(names) != len(g.checks) {
			t.Errorf("%s has %d checks and %d names: %q", g.name, len(g.checks), len(names), slices.Sorted(maps.Keys(names)))
		}
	}
}
