package mount

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// wantAt checks where the parts show, ignoring paths outside the test's directory.
func wantAt(t *testing.T, what string, table Table, part Part, want ...string) {
	t.Helper()
	if got := table.Where(part); !slices.Equal(got, want) {
		t.Errorf("%s shows at %v, want %v", what, got, want)
	}
}

func TestTable(t *testing.T) {
	dir := folder(t, "a", "b", "c", "sub", "other")
	d := disk(t)
	must(t, mountAt(t, ext4(d), target(t, dir+"/a")))
	must(t, os.Mkdir(dir+"/a/sub", 0o700), os.Symlink(dir, dir+"/link"))
	must(t, bindAt(t, dir+"/a", target(t, dir+"/b"), true), bindAt(t, dir+"/a/sub", target(t, dir+"/c"), true))
	must(t, bindAt(t, dir+"/sub", target(t, dir+"/other"), false))
	must(t, os.WriteFile(dir+"/node", nil, 0o600), bindAt(t, d.Path, target(t, dir+"/node"), false))
	t.Cleanup(func() { must(t, unix.Unmount(dir+"/node", 0)) })
	table, err := ReadTable()
	must(t, err)
	entry, ok, err := table.At(dir + "/link/a")
	if err != nil || !ok || entry.Mountpoint != dir+"/a" || entry.Device() != d.Number() {
		t.Fatalf("at %s/link/a is %v (%v)", dir, entry, err)
	}
	wantAt(t, "the mount", table, table.Shown(entry, ""), dir+"/b", dir+"/c")
	wantAt(t, "the mount, from one", table, table.Shown(entry, dir+"/b"), dir+"/c")
	wantAt(t, "the device", table, table.OnDevice(d.Number()), dir+"/a", dir+"/b", dir+"/c")
	wantAt(t, "no device", table, table.OnDevice(unix.Mkdev(4000, 1)))
	for path, want := range map[string][]string{
		dir + "/a/sub": {dir + "/c"}, dir + "/link/sub": {dir + "/other"}, d.Path: {dir + "/node"}, dir + "/none": nil,
	} {
		part, err := table.Of(path)
		must(t, err)
		wantAt(t, path, table, part, want...)
	}
	for _, path := range []string{dir, dir + "/none", dir + "/a/sub"} {
		if entry, ok, err := table.At(path); ok || err != nil {
			t.Errorf("at %s is %v (%v), want nothing", path, entry, err)
		}
	}
}

// Copies that propagation makes of a mount go with it: they are no other place.
func TestTableKnowsCopies(t *testing.T) {
	dir := folder(t, "shared", "copy")
	must(t, bindAt(t, dir+"/shared", target(t, dir+"/shared"), false))
	must(t, unix.Mount("", dir+"/shared", "", unix.MS_SHARED, ""), os.Mkdir(dir+"/shared/at", 0o700),
		os.Mkdir(dir+"/shared/else", 0o700))
	must(t, bindAt(t, dir+"/shared", target(t, dir+"/copy"), false))
	d := disk(t)
	must(t, mountAt(t, ext4(d), target(t, dir+"/shared/at")))
	t.Cleanup(func() { must(t, unix.Unmount(dir+"/shared/at", 0)) })
	table, err := ReadTable()
	must(t, err)
	entry, ok, err := table.At(dir + "/copy/at")
	if err != nil || !ok {
		t.Fatalf("the mount was not copied (%v)", err)
	}
	wantAt(t, "the mount", table, table.Shown(entry, ""))
	must(t, bindAt(t, dir+"/shared/at", target(t, dir+"/shared/else"), false))
	t.Cleanup(func() { must(t, unix.Unmount(dir+"/shared/else", 0)) })
	table, err = ReadTable()
	must(t, err)
	wantAt(t, "the mount", table, table.Shown(entry, ""), dir+"/copy/else", dir+"/shared/else")
}
