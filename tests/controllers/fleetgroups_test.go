package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/volume"
)

// grouped is a cluster with two volumes, on a node with the given pool, and the specification of a group of them.
type grouped struct {
	*testing.T
	*volume.Service
	ctx  context.Context
	api  client.Client
	spec backends.GroupSpec
}

func newGrouped(t *testing.T, pool string) *grouped {
	t.Helper()
	f, dir := newFleets(pool), t.TempDir()
	instance := f.open(t.Context(), t, backends.Options{DataDir: dir, Driver: local.Definition().DriverName()})
	t.Cleanup(func() {
		if err := backendtest.Close(t.Context(), instance); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	g := &grouped{t, volume.New(instance.Controller, backends.Resolve(instance.Controller, nil), nil), ctx, f.of(t, dir),
		backends.GroupSpec{Name: "g", Parameters: &local.SnapshotParameters{InUse: "refuse"}, Fingerprint: "f"}}
	for _, name := range []string{"a", "b"} {
		v, err := g.Create(ctx, fleetSpec(name), backends.ContentSource{})
		if err != nil {
			t.Fatal(err)
		}
		g.spec.Volumes = append(g.spec.Volumes, v.Handle)
	}
	return g
}

// TestGroupInAnotherOrder removes a group's object by force and requests the group in another order. No snapshot of one
// volume may be returned as that of the other.
func TestGroupInAnotherOrder(t *testing.T) {
	g := newGrouped(t, images)
	made, err := g.CreateGroup(g.ctx, g.spec)
	if err != nil {
		t.Fatal(err)
	}
	o := &v1alpha1.LocalSnapshotGroup{ObjectMeta: metav1.ObjectMeta{Namespace: fleetNamespace, Name: made.Handle}}
	if err := g.api.Get(g.ctx, client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	o.Finalizers = nil
	if err := errors.Join(g.api.Update(g.ctx, o), g.api.Delete(g.ctx, o)); err != nil {
		t.Fatal(err)
	}
	g.spec.Volumes[0], g.spec.Volumes[1] = g.spec.Volumes[1], g.spec.Volumes[0]
	again, err := g.CreateGroup(g.ctx, g.spec)
	if err == nil || !backends.Is(err, backends.Unusable) {
		t.Errorf("it is %+v (%v); it was %+v", again, err, made)
	}
	g.spec.Volumes[0], g.spec.Volumes[1] = g.spec.Volumes[1], g.spec.Volumes[0]
	if err := g.DeleteGroup(g.ctx, made.Handle, []string{made.Snapshots[0].Handle, made.Snapshots[1].Handle}); err != nil {
		t.Error(err)
	}
}

// TestGroupOfDirectories checks that a node whose driver supports no groups refuses one permanently, and that nothing
// is left of it.
func TestGroupOfDirectories(t *testing.T) {
	g := newGrouped(t, "type: directory")
	if _, err := g.CreateGroup(g.ctx, g.spec); !backends.Is(err, backends.Unsupported) {
		t.Errorf("a group of directories says %v", err)
	}
	var left v1alpha1.LocalSnapshotGroupList
	if err := g.api.List(g.ctx, &left); err != nil || len(left.Items) > 0 {
		t.Errorf("%d orders are left: %v", len(left.Items), err)
	}
	handle := local.GroupHandle("g")
	if err := g.DeleteGroup(g.ctx, handle, []string{local.MemberHandle(handle, 0)}); err != nil {
		t.Error(err)
	}
}
