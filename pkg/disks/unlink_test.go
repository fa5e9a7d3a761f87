package disks

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestUnlinkOthers checks that of an earlier process's links only those stay that lead to their volume.
func TestUnlinkOthers(t *testing.T) {
	var nodes, names []string
	for _, file := range []string{"a", "b"} {
		path := filepath.Join(t.TempDir(), file)
		if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		node := testfs.Attach(t, path)
		var stat unix.Stat_t
		if err := unix.Stat(node, &stat); err != nil {
			t.Fatal(err)
		}
		name, err := discovery.NameAt(t.Context(), unix.Major(stat.Rdev), unix.Minor(stat.Rdev))
		if err != nil {
			t.Fatal(err)
		}
		nodes, names = append(nodes, node), append(names, name)
	}
	dir := t.TempDir()
	for name, to := range map[string]string{
		names[0]: nodes[0], names[1]: nodes[0], "disk-gone": "/dev/none", "disk-none": "/dev/null",
	} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	e := &Engine{options: Options{LinkDir: dir}}
	if err := e.unlinkOthers(t.Context()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if err != nil || !slices.Equal(left, names[:1]) {
		t.Errorf("the links %q stay (%v), want that of %s alone", left, err, names[0])
	}
}
