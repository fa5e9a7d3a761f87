package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// The snapshots of a group that cannot be read, and that somebody then removes, are gone with it, and may be made
// again.
func TestMembersGoWithTheirGroup(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	g, err := f.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{v.Handle}})
	must(t, err)
	dir := filepath.Join(f.in("image").path, groupsFolder, g.Handle)
	f.shut()
	path := filepath.Join(dir, recordFile)
	text, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, []byte(strings.Replace(string(text), `"version": 1`, `"version": 99`, 1)), 0o600))
	f.open()
	hasKind(t, "Get", second(f.GetSnapshot(t.Context(), g.Snapshots[0].Handle)), backends.Unusable)
	must(t, os.RemoveAll(dir))
	f.mend()
	hasKind(t, "GetGroup", second(f.GetGroup(t.Context(), g.Handle)), backends.NotFound)
	hasKind(t, "Get", second(f.GetSnapshot(t.Context(), g.Snapshots[0].Handle)), backends.NotFound)
	_, err = f.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{v.Handle}})
	must(t, err)
	must(t, second(f.GetSnapshot(t.Context(), g.Snapshots[0].Handle)))
}

// The snapshots of a group that could not be put in its place are forgotten with it: they never were.
func TestMembersOfAGroupThatFailed(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	spec := backends.GroupSpec{Name: "g", Volumes: []string{v.Handle}}
	handle, p := handleOf(groupPrefix, "g"), f.in("image")
	place := filepath.Join(p.path, groupsFolder, handle)
	must(t, os.Mkdir(place, 0o700))
	hasKind(t, "CreateGroup", second(f.CreateGroup(t.Context(), spec)), backends.Unavailable)
	if p.index.has(handle) || p.index.has(memberHandle(handle, 0)) {
		t.Errorf("the pool's index has the group: %t, and its snapshot: %t", p.index.has(handle),
			p.index.has(memberHandle(handle, 0)))
	}
	must(t, os.Remove(place))
	must(t, second(f.CreateGroup(t.Context(), spec)))
	if !p.index.has(memberHandle(handle, 0)) {
		t.Error("the pool's index lacks the snapshot of the group")
	}
}
