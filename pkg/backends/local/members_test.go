package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// The snapshots of an unreadable group that is then removed by hand are gone with it, and can be created again.
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

// The snapshots of a group that could not be moved to its place are forgotten with it, because they never existed. If
// another entry is in that place, this happens once the entry was checked.
func TestMembersOfAGroupThatFailed(t *testing.T) {
	for name, step := range map[string]struct {
		spoil, heal func(groups, handle string) error
	}{
		"there is no place": {
			func(groups, _ string) error { return os.Remove(groups) },
			func(groups, _ string) error { return os.Mkdir(groups, 0o700) },
		},
		"its place is taken": {
			func(groups, handle string) error { return os.Mkdir(filepath.Join(groups, handle), 0o700) },
			func(string, string) error { return nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			spec := backends.GroupSpec{Name: "g", Volumes: []string{f.create("image", "one").Handle}}
			handle, p := handleOf(groupPrefix, "g"), f.in("image")
			must(t, step.spoil(p.folder(groupsFolder), handle))
			hasKind(t, "CreateGroup", second(f.CreateGroup(t.Context(), spec)), backends.Unavailable)
			must(t, step.heal(p.folder(groupsFolder), handle))
			f.mend()
			if p.index.has(handle) || p.index.has(memberHandle(handle, 0)) {
				t.Errorf("the pool's index has the group: %t, and its snapshot: %t", p.index.has(handle),
					p.index.has(memberHandle(handle, 0)))
			}
			must(t, second(f.CreateGroup(t.Context(), spec)))
			if !p.index.has(memberHandle(handle, 0)) {
				t.Error("the pool's index lacks the snapshot of the group")
			}
		})
	}
}
