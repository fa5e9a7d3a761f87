package volume_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/memory"
	"github.com/stowage-csi/stowage/pkg/volume"
)

const mib = 1 << 20

// newService returns a Service over the reference backend.
func newService(t *testing.T, observe volume.Observer) *volume.Service {
	t.Helper()
	instance := openMemory(t)
	return volume.New(instance.Controller, backends.Resolve(instance.Controller, instance.Node), observe)
}

func openMemory(t *testing.T) *backends.Instance {
	t.Helper()
	definition := memory.Definition()
	config := definition.NewConfig().(*memory.Config)
	config.Nodes = []string{"node-2"}
	instance, err := definition.Open(t.Context(), backends.Options{
		Driver: "memory.csi.stowage.dev", DataDir: t.TempDir(), NodeID: "node-1", Config: config,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := backendtest.Close(t.Context(), instance); err != nil {
			t.Error(err)
		}
	})
	return instance
}

func spec(name string) backends.Spec {
	return backends.Spec{
		Name: name, Capacity: backends.CapacityRange{RequiredBytes: 8 * mib}, Parameters: memory.Definition().NewParameters(),
		Access: backends.Access{Types: []backends.AccessType{backends.Mount},
			Modes: []backends.AccessMode{backends.SingleNodeWriter}},
		Fingerprint: "one",
	}
}

func mustCreate(t *testing.T, s *volume.Service, spec backends.Spec, source backends.ContentSource) *backends.Volume {
	t.Helper()
	made, err := s.Create(t.Context(), spec, source)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func wantKind(t *testing.T, err error, kind backends.Kind, parts ...string) {
	t.Helper()
	if !backends.Is(err, kind) {
		t.Errorf("got %v, want a failure that is %s", err, kind)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not mention %q", err, part)
		}
	}
}

func TestCreateAgainIsTheSameVolume(t *testing.T) {
	s := newService(t, nil)
	first := mustCreate(t, s, spec("a"), backends.ContentSource{})
	snapshot, err := s.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: first.Handle})
	if err != nil {
		t.Fatal(err)
	}
	for what, source := range map[string]backends.ContentSource{
		"empty": {}, "restored": {Snapshot: snapshot.Handle}, "cloned": {Volume: first.Handle},
	} {
		one := mustCreate(t, s, spec(what), source)
		two := mustCreate(t, s, spec(what), source)
		// A replay that forgets the content source or the topology makes csi-provisioner delete the volume.
		if one.Handle != two.Handle || two.Source != source || len(two.Topology) != len(one.Topology) {
			t.Errorf("%s: first %+v, then %+v", what, one, two)
		}
	}
}

func TestCreateOfATakenName(t *testing.T) {
	s := newService(t, nil)
	first := mustCreate(t, s, spec("a"), backends.ContentSource{})
	for what, test := range map[string]struct {
		change func(*backends.Spec)
		source backends.ContentSource
		parts  []string
	}{
		"larger": {change: func(s *backends.Spec) { s.Capacity.RequiredBytes = 9 * mib },
			parts: []string{"8388608", "9437184"}},
		"smaller": {change: func(s *backends.Spec) { s.Capacity = backends.CapacityRange{LimitBytes: mib} },
			parts: []string{"8388608"}},
		"parameters": {change: func(s *backends.Spec) { s.Fingerprint = "two" }, parts: []string{"parameters"}},
		"source":     {source: backends.ContentSource{Volume: first.Handle}, parts: []string{first.Handle, "nothing"}},
		"place": {change: func(s *backends.Spec) {
			s.Topology.Requisite = []backends.Topology{{"memory.csi.stowage.dev/zone": "moon"}}
		}, parts: []string{"moon"}},
		"access": {change: func(s *backends.Spec) { s.Access.Modes = []backends.AccessMode{"TELEPATHY"} },
			parts: []string{"TELEPATHY"}},
	} {
		want := spec("a")
		if test.change != nil {
			test.change(&want)
		}
		t.Run(what, func(t *testing.T) {
			_, err := s.Create(t.Context(), want, test.source)
			wantKind(t, err, backends.Exists, append(test.parts, `"a"`)...)
		})
	}
}

func TestDeleteOfWhatIsGone(t *testing.T) {
	s := newService(t, nil)
	for what, err := range map[string]error{
		"volume":   s.Delete(t.Context(), "none"),
		"snapshot": s.DeleteSnapshot(t.Context(), "none"),
		"group":    s.DeleteGroup(t.Context(), "none", []string{"x"}),
		"attached": s.Unpublish(t.Context(), "none", "node-1"),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestPublish(t *testing.T) {
	s := newService(t, nil)
	made := mustCreate(t, s, spec("a"), backends.ContentSource{})
	request := backends.AttachRequest{Handle: made.Handle, Node: "node-1", Access: spec("a").Access}
	for range 2 {
		if _, err := s.Publish(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := request
	elsewhere.Node = "node-2"
	_, err := s.Publish(t.Context(), elsewhere)
	wantKind(t, err, backends.InUse, "node-1")
	wantKind(t, s.Delete(t.Context(), made.Handle), backends.InUse, "node-1")
	impossible := request
	impossible.Access = backends.Access{Modes: []backends.AccessMode{"TELEPATHY"}}
	_, err = s.Publish(t.Context(), impossible)
	wantKind(t, err, backends.Invalid, "TELEPATHY")
	for range 2 {
		if err := s.Unpublish(t.Context(), made.Handle, "node-1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), made.Handle); err != nil {
		t.Error(err)
	}
}

func TestSnapshots(t *testing.T) {
	s := newService(t, nil)
	a := mustCreate(t, s, spec("a"), backends.ContentSource{})
	b := mustCreate(t, s, spec("b"), backends.ContentSource{})
	one, err := s.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: a.Handle})
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: a.Handle})
	if err != nil || again.Handle != one.Handle {
		t.Errorf("got %+v, %v", again, err)
	}
	_, err = s.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: b.Handle})
	wantKind(t, err, backends.Exists, a.Handle, b.Handle)
	_, err = s.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: a.Handle,
		Topology: backends.TopologyRequirement{Requisite: []backends.Topology{{"memory.csi.stowage.dev/zone": "moon"}}}})
	wantKind(t, err, backends.Exists, `"s"`, "moon")
	for what, test := range map[string]struct {
		handle, volume string
		want           int
	}{
		"all": {"", "", 1}, "by handle": {one.Handle, "", 1}, "by volume": {"", a.Handle, 1},
		"of another volume": {"", b.Handle, 0},
		"both":              {one.Handle, a.Handle, 1}, "both, not fitting": {one.Handle, b.Handle, 0},
		"unknown": {"none", "", 0},
	} {
		found, _, err := s.ListSnapshots(t.Context(), test.handle, test.volume, backends.Page{})
		if err != nil || len(found) != test.want {
			t.Errorf("%s: got %v, %v", what, found, err)
		}
	}
}

func TestGroups(t *testing.T) {
	s := newService(t, nil)
	a := mustCreate(t, s, spec("a"), backends.ContentSource{})
	b := mustCreate(t, s, spec("b"), backends.ContentSource{})
	create := func(fingerprint string, volumes ...string) (*backends.Group, error) {
		return s.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: volumes, Fingerprint: fingerprint})
	}
	made, err := create("one", a.Handle, b.Handle)
	if err != nil {
		t.Fatal(err)
	}
	again, err := create("one", b.Handle, a.Handle)
	if err != nil || again.Handle != made.Handle {
		t.Errorf("got %+v, %v", again, err)
	}
	_, err = create("one", a.Handle)
	wantKind(t, err, backends.Exists, "g")
	_, err = create("two", a.Handle, b.Handle)
	wantKind(t, err, backends.Exists, `"g"`, "parameters")
	members := []string{made.Snapshots[0].Handle, made.Snapshots[1].Handle}
	for what, test := range map[string]struct {
		members []string
		ok      bool
	}{
		"none named": {nil, false}, "all": {members, true}, "one missing": {members[:1], false},
		"a stranger": {append(members, "x"), false},
	} {
		if _, err := s.GetGroup(t.Context(), made.Handle, test.members); (err == nil) != test.ok || err != nil &&
			!backends.Is(err, backends.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantKind(t, s.DeleteGroup(t.Context(), made.Handle, members[:1]), backends.Invalid)
	// CSI, DeleteSnapshot: INVALID_ARGUMENT only for a member of a group, not for a snapshot that is in use
	wantKind(t, s.DeleteSnapshot(t.Context(), members[0]), backends.Invalid)
	if err := s.DeleteGroup(t.Context(), made.Handle, members); err != nil {
		t.Error(err)
	}
}

func TestEveryOperationIsObserved(t *testing.T) {
	seen := map[string]error{}
	s := newService(t, func(operation string, _ time.Duration, err error) { seen[operation] = err })
	made := mustCreate(t, s, spec("a"), backends.ContentSource{})
	_, _ = s.Get(t.Context(), "none")
	for what, err := range map[string]error{
		"expand":      expand(t.Context(), s, made.Handle),
		"modify":      s.Modify(t.Context(), made.Handle, memory.Definition().NewMutable()),
		"list":        page(s.List(t.Context(), backends.Page{})),
		"list-health": page(s.ListHealth(t.Context(), backends.Page{})),
		"health":      second(s.Health(t.Context(), made.Handle)),
		"capacity":    second(s.Capacity(t.Context(), backends.CapacityQuery{Parameters: spec("a").Parameters})),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, want := range []string{"create", "get", "expand", "modify", "list", "list-health", "health", "capacity"} {
		if _, ok := seen[want]; !ok {
			t.Errorf("%s was not observed, only %v", want, seen)
		}
	}
	if !backends.Is(seen["get"], backends.NotFound) {
		t.Errorf("the failure of get was observed as %v", seen["get"])
	}
}

func expand(ctx context.Context, s *volume.Service, handle string) error {
	grown, err := s.Expand(ctx, handle, backends.CapacityRange{RequiredBytes: 16 * mib})
	if err == nil && grown.CapacityBytes != 16*mib {
		return errors.New("the volume did not grow")
	}
	return err
}

func page[T any](_ []T, _ string, err error) error { return err }

func second[T any](_ T, err error) error { return err }

// bare is a backend with only the required methods.
type bare struct{ backends.Backend }

func TestWhatABackendCannotDo(t *testing.T) {
	controller := bare{openMemory(t).Controller}
	s := volume.New(controller, backends.Resolve(controller, nil), nil)
	ctx := t.Context()
	for what, err := range map[string]error{
		"attach": second(s.Publish(ctx, backends.AttachRequest{})), "detach": s.Unpublish(ctx, "v", "n"),
		"expand": second(s.Expand(ctx, "v", backends.CapacityRange{})), "modify": s.Modify(ctx, "v", nil),
		"list": page(s.List(ctx, backends.Page{})), "capacity": second(s.Capacity(ctx, backends.CapacityQuery{})),
		"health": second(s.Health(ctx, "v")), "list health": page(s.ListHealth(ctx, backends.Page{})),
		"snapshot": second(s.CreateSnapshot(ctx, backends.SnapshotSpec{})), "get snapshot": second(s.GetSnapshot(ctx, "s")),
		"delete snapshot": s.DeleteSnapshot(ctx, "s"), "list snapshots": page(s.ListSnapshots(ctx, "", "", backends.Page{})),
		"group": second(s.CreateGroup(ctx, backends.GroupSpec{})), "get group": second(s.GetGroup(ctx, "g", nil)),
		"delete group": s.DeleteGroup(ctx, "g", nil),
	} {
		if !backends.Is(err, backends.Unsupported) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	for _, source := range []backends.ContentSource{{Snapshot: "s"}, {Volume: "v"}} {
		_, err := s.Create(ctx, spec("a"), source)
		wantKind(t, err, backends.Invalid)
	}
}

// vanishing fails to create an item, as if the name were taken, and then to find it: another call deletes it meanwhile.
type vanishing struct {
	backends.Backend
	backends.Snapshotter
	backends.GroupSnapshotter
	making, found backends.Kind // of the failures to create an item, and to find it
}

func (v vanishing) Create(context.Context, backends.Spec) (*backends.Volume, error) {
	return nil, backends.Errorf(v.making, "not to be made")
}

func (v vanishing) Find(context.Context, backends.Spec) (*backends.Volume, error) {
	return nil, backends.Errorf(v.found, "not now")
}

func (v vanishing) CreateSnapshot(context.Context, backends.SnapshotSpec) (*backends.Snapshot, error) {
	return nil, backends.Errorf(v.making, "not to be made")
}

func (v vanishing) FindSnapshot(context.Context, backends.SnapshotSpec) (*backends.Snapshot, error) {
	return nil, backends.Errorf(v.found, "not now")
}

func (v vanishing) CreateGroup(context.Context, backends.GroupSpec) (*backends.Group, error) {
	return nil, backends.Errorf(v.making, "not to be made")
}

func (v vanishing) FindGroup(context.Context, string) (*backends.Group, error) {
	return nil, backends.Errorf(v.found, "not now")
}

// It is no final failure if an item vanishes during its creation: the orchestrator must retry.
func TestWhatVanishesIsBusy(t *testing.T) {
	for found, want := range map[backends.Kind]backends.Kind{
		backends.NotFound: backends.Busy, backends.Unavailable: backends.Unavailable, backends.Unusable: backends.Unusable,
		backends.Denied: backends.Unusable,
	} {
		backend := vanishing{making: backends.Exists, found: found}
		s := volume.New(backend, backends.Resolve(backend, nil), nil)
		_, err := s.Create(t.Context(), spec("a"), backends.ContentSource{})
		wantKind(t, err, want)
		_, err = s.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "a"})
		wantKind(t, err, want)
		_, err = s.CreateGroup(t.Context(), backends.GroupSpec{Name: "a"})
		wantKind(t, err, want)
	}
}

// TestARefusalIsFinalForWhatIsNotThere: PERMISSION_DENIED makes csi-provisioner and csi-snapshotter forget a name,
// although an earlier call may have created an item that cannot be looked up now.
func TestARefusalIsFinalForWhatIsNotThere(t *testing.T) {
	for found, want := range map[backends.Kind]backends.Kind{
		backends.NotFound: backends.Denied, backends.Denied: backends.Unusable, backends.Unavailable: backends.Unusable,
	} {
		backend := vanishing{making: backends.Denied, found: found}
		s := volume.New(backend, backends.Resolve(backend, nil), nil)
		_, err := s.Create(t.Context(), spec("a"), backends.ContentSource{})
		wantKind(t, err, want, "not to be made")
		_, err = s.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "a"})
		wantKind(t, err, want, "not to be made")
		_, err = s.CreateGroup(t.Context(), backends.GroupSpec{Name: "a"})
		wantKind(t, err, want, "not to be made")
	}
}

// makesGroup is a backend that is creating a group.
type makesGroup struct {
	backends.Backend
	backends.GroupSnapshotter
	stopped bool
}

func (m *makesGroup) GetGroup(_ context.Context, handle string) (*backends.Group, error) {
	return nil, backends.Errorf(backends.NotFound, "there is no group %q", handle)
}

func (m *makesGroup) DeleteGroup(_ context.Context, handle string) error {
	m.stopped = true
	return backends.Errorf(backends.NotFound, "there is no group %q", handle)
}

// TestGroupInTheMakingIsDeleted checks that the backend receives the deletion of a group that does not exist yet: it
// may be creating it.
func TestGroupInTheMakingIsDeleted(t *testing.T) {
	b := &makesGroup{}
	s := volume.New(b, backends.Resolve(b, nil), nil)
	if err := s.DeleteGroup(t.Context(), "g", []string{"a"}); err != nil || !b.stopped {
		t.Errorf("%v; the backend was asked: %t", err, b.stopped)
	}
}
