package localvolume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient/csiclienttest"
	"github.com/stowage-csi/stowage/pkg/volume"
)

func (n *node) TakeGroup(ctx context.Context, w csiclient.GroupWanted) (csiclient.Group, error) {
	if n.happens(20) {
		return csiclient.Group{}, csiclienttest.Refusals()[n.n(5)]
	}
	handle := local.GroupHandle(w.Name)
	return do(ctx, n, handle, func() (csiclient.Group, error) {
		taken := csiclient.Group{Handle: handle, TakenAt: time.Now(), IsReady: true}
		for i, v := range w.Volumes {
			source, isThere := n.volumes[v]
			member := local.MemberHandle(handle, i)
			if _, ok := n.snapshots[member]; !ok {
				if !isThere {
					return csiclient.Group{}, n.sourceIsGone(handle, v)
				}
				if err := n.take(n.snapshots, member, source); err != nil {
					n.dropGroup(handle)
					return csiclient.Group{}, csiclienttest.Absent(err)
				}
			}
			taken.Snapshots = append(taken.Snapshots,
				csiclient.Snapshot{Handle: member, Volume: v, SizeBytes: n.snapshots[member].bytes})
		}
		return taken, n.refuses
	})
}

// sourceIsGone returns the driver's answer for a group of a missing volume. If the driver does not delete groups, a
// worker that removes a group requests it to get a proof that it does not exist. The caller holds the lock.
func (n *node) sourceIsGone(handle, source string) error {
	o := &v1alpha1.LocalSnapshotGroup{}
	if err := n.api.Get(context.Background(), request(handle).NamespacedName, o); err != nil || !isUnwanted(o) {
		n.Errorf("the group %s is to be of %s, which is not there: %v", handle, source, err)
	}
	return csiclienttest.Absent(csiclienttest.Invalid())
}

func (n *node) DeleteGroup(ctx context.Context, handle string, members []string) error {
	if n.happens(5) {
		return csiclienttest.Refusals()[n.n(5)]
	}
	_, err := do(ctx, n, handle, func() (bool, error) {
		if !slices.Contains(members, local.MemberHandle(handle, 0)) {
			n.Errorf("the group %s is to go with %v", handle, members)
		}
		n.dropGroup(handle)
		return true, nil
	})
	return err
}

// dropGroup removes the existing snapshots of a group. The caller holds the lock.
func (n *node) dropGroup(handle string) {
	for i := range 3 {
		member := local.MemberHandle(handle, i)
		n.room += n.snapshots[member].bytes
		delete(n.snapshots, member)
	}
}

// group takes a group of a single volume and returns its handle, or "" if it was refused or given up.
func (s *simulation) group(ctx context.Context, v *backends.Volume) (handle string) {
	spec := backends.GroupSpec{Name: "group-of-" + v.Name, Volumes: []string{v.Handle}}
	handle = local.GroupHandle(spec.Name)
	err := s.ask(ctx, func(ctx context.Context, service *volume.Service) error {
		made, err := service.CreateGroup(ctx, spec)
		if err != nil && !isFinal(err) && s.n(5) == 0 {
			return errGaveUp
		}
		if err == nil && (made.Handle != handle || len(made.Snapshots) != 1 || made.Snapshots[0].Volume != v.Handle ||
			made.Snapshots[0].SizeBytes != v.CapacityBytes) {
			s.Errorf("the group of %+v is %+v", v, made)
		}
		return err
	})
	switch {
	case errors.Is(err, errGaveUp):
		s.deleteGroup(ctx, handle)
		return ""
	case err != nil:
		s.checkSnapshotIsNowhere(local.MemberHandle(handle, 0), "was refused: "+err.Error())
		return ""
	}
	return handle
}

func (s *simulation) deleteGroup(ctx context.Context, handle string) {
	members := []string{local.MemberHandle(handle, 0)}
	for s.ask(ctx, func(ctx context.Context, v *volume.Service) error {
		return v.DeleteGroup(ctx, handle, members)
	}) != nil {
		s.sleep(time.Second) // csi-snapshotter always retries.
	}
	s.checkSnapshotIsNowhere(members[0], "was deleted")
}

// TestGroups checks that a group must be of volumes of one node, that its members are found and listed with the other
// snapshots, page by page, and that they are deleted only with the group.
func TestGroups(t *testing.T) {
	inCalm(t, func(c *calm) {
		c.start("node-0", "node-1")
		service := edge(c.masters[0])
		var handles []string
		for _, at := range []string{"node-0", "node-0", "node-1"} {
			v, err := c.create(c.masters[0], wanted("volume-"+string(rune('a'+len(handles))), at))
			if err != nil {
				t.Fatal(err)
			}
			handles = append(handles, v.Handle)
		}
		_, err := service.CreateGroup(c.ctx, backends.GroupSpec{Name: "g", Volumes: handles})
		if !backends.Is(err, backends.InUse) || !strings.Contains(err.Error(), "of one node") {
			t.Errorf("a group over two nodes says %v", err)
		}
		made, err := service.CreateGroup(c.ctx, backends.GroupSpec{Name: "g", Volumes: handles[:2]})
		if err != nil {
			t.Fatal(err)
		}
		other, err := edge(c.masters[1]).CreateSnapshot(c.ctx, backends.SnapshotSpec{Name: "s", Volume: handles[0]})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{made.Snapshots[0].Handle, made.Snapshots[1].Handle, other.Handle}
		slices.Sort(want)
		if got := c.listed(""); !slices.Equal(got, want) {
			t.Errorf("the list has %v, want %v", got, want)
		}
		if got := c.listed(handles[1]); !slices.Equal(got, []string{made.Snapshots[1].Handle}) {
			t.Errorf("the list of the second volume has %v", got)
		}
		member := made.Snapshots[1].Handle
		if err := service.DeleteSnapshot(c.ctx, member); !backends.Is(err, backends.Invalid) {
			t.Errorf("the deletion of a member says %v", err)
		}
		if _, err := c.masters[1].Restore(c.ctx, wanted("copy", "node-1"), member); !backends.Is(err, backends.Exhausted) {
			t.Errorf("a copy on another node says %v", err)
		}
		if copied, err := c.masters[1].Restore(c.ctx, wanted("copy", ""), member); err != nil {
			t.Error(err)
		} else if copied.Topology[0][key] != "node-0" || copied.Source.Snapshot != member {
			t.Errorf("the copy is %+v", copied)
		}
		if err := service.DeleteGroup(c.ctx, made.Handle, []string{made.Snapshots[0].Handle, member}); err != nil {
			t.Error(err)
		}
		if _, err := service.GetSnapshot(c.ctx, member); !backends.Is(err, backends.NotFound) {
			t.Errorf("a member whose group is gone says %v", err)
		}
		if left := c.names(&v1alpha1.LocalSnapshotGroupList{}, ""); len(left) > 0 {
			t.Errorf("%v are left", left)
		}
	})
}

// listed returns the handles of the snapshots, read in pages of one.
func (c *calm) listed(ofVolume string) (handles []string) {
	c.Helper()
	page := backends.Page{Limit: 1}
	for {
		found, next, err := c.masters[0].ListSnapshots(c.ctx, ofVolume, page)
		if err != nil {
			c.Fatal(err)
		}
		for _, s := range found {
			handles = append(handles, s.Handle)
		}
		if page.Token = next; next == "" {
			return handles
		}
	}
}

// TestGroupThatCannotBe checks that a group of too many volumes is refused before they are looked up, and that a group
// can be deleted if the driver has refused it without proof or no worker has begun it.
func TestGroupThatCannotBe(t *testing.T) {
	inCalm(t, func(c *calm) {
		v, service := c.silenced(), edge(c.masters[0])
		many := make([]string, backends.MostMembers+1)
		for i := range many {
			many[i] = fmt.Sprint("volume-", i)
		}
		_, err := service.CreateGroup(c.ctx, backends.GroupSpec{Name: "many", Volumes: many})
		if !backends.Is(err, backends.Invalid) || !strings.Contains(err.Error(), "at most 256") {
			t.Errorf("a group of %d volumes says %v", len(many), err)
		}
		spec := backends.GroupSpec{Name: "g", Volumes: []string{v.Handle}}
		take := func(ctx context.Context) error { _, err := service.CreateGroup(ctx, spec); return err }
		handle := local.GroupHandle("g")
		drop := func(ctx context.Context) error {
			return service.DeleteGroup(ctx, handle, []string{local.MemberHandle(handle, 0)})
		}
		if err := c.within(5*time.Second, take); !backends.Is(err, backends.Busy) {
			t.Errorf("a group that nobody begins says %v", err)
		}
		if err := c.within(time.Minute, drop); err != nil {
			t.Errorf("it cannot be deleted: %v", err)
		}
		c.nodes["node-0"].refuse(csiclienttest.Invalid(), nil)
		c.start("node-0")
		if err := c.within(time.Minute, take); !backends.Is(err, backends.Unusable) {
			t.Errorf("a group that the driver refuses without proof says %v", err)
		}
		if err := c.within(time.Minute, drop); err != nil {
			t.Errorf("it cannot be deleted: %v", err)
		}
		c.checkSnapshotIsNowhere(local.MemberHandle(handle, 0), "was deleted")
	})
}
