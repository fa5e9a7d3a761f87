package scrub_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/disks/scrub"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestSubvolumes checks that what a tenant can do with subvolumes keeps no volume from being emptied.
func TestSubvolumes(t *testing.T) {
	create := func(t *testing.T, path string) { testfs.Run(t, "btrfs", "subvolume", "create", path) }
	freeze := func(t *testing.T, path string) { testfs.Run(t, "btrfs", "property", "set", path, "ro", "true") }
	for what, plant := range map[string]func(t *testing.T, at string){
		"read-only snapshot": func(t *testing.T, at string) {
			create(t, at+"/a")
			create(t, at+"/a/nested")
			must(t, os.WriteFile(at+"/a/file", []byte(canary), 0o600))
			testfs.Run(t, "btrfs", "subvolume", "snapshot", "-r", at+"/a", at+"/b")
		},
		"read-only root": func(t *testing.T, at string) {
			must(t, os.WriteFile(at+"/file", []byte(canary), 0o600))
			freeze(t, at)
		},
		"read-only root with a lost+found": func(t *testing.T, at string) {
			must(t, os.Mkdir(at+"/lost+found", 0o700))
			must(t, os.WriteFile(at+"/lost+found/file", []byte(canary), 0o600))
			freeze(t, at)
		},
		"read-only lost+found": func(t *testing.T, at string) {
			create(t, at+"/lost+found")
			must(t, os.Chmod(at+"/lost+found", 0o700))
			must(t, os.WriteFile(at+"/lost+found/file", []byte(canary), 0o600))
			freeze(t, at+"/lost+found")
		},
		"read-only trash directory": func(t *testing.T, at string) {
			must(t, os.WriteFile(at+"/file", []byte(canary), 0o600))
			create(t, at+"/.stowage-scrub")
			freeze(t, at+"/.stowage-scrub")
		},
		"trash directory of a tenant": func(t *testing.T, at string) {
			create(t, at+"/.stowage-scrub")
			must(t, errors.Join(os.WriteFile(at+"/.stowage-scrub/file", []byte(canary), 0o600),
				os.MkdirAll(at+"/a/b", 0o700), os.WriteFile(at+"/a/b/file", []byte(canary), 0o600),
				os.WriteFile(at+"/file", []byte(canary), 0o600), os.Symlink("a", at+"/link")))
		},
		"snapshot of the root": func(t *testing.T, at string) {
			create(t, at+"/nested")
			testfs.Run(t, "btrfs", "subvolume", "snapshot", "-r", at, at+"/b")
		},
	} {
		t.Run(what, func(t *testing.T) {
			at := testfs.New(t, "btrfs", 256)
			plant(t, at)
			must(t, scrub.Path(t.Context(), at, ignore))
			for _, left := range entries(t, at) {
				if inside := entries(t, filepath.Join(at, left)); left != "lost+found" || len(inside) > 0 {
					t.Errorf("left is %s with %s", left, strings.Join(inside, ", "))
				}
			}
		})
	}
}

// TestProjects checks that a volume is emptied whose entries belong to another project than its root, from which
// everything in the root inherits. A filesystem with project quotas moves no file into another project's directory.
func TestProjects(t *testing.T) {
	at := testfs.New(t, "xfs", 320)
	must(t, errors.Join(os.Mkdir(at+"/a", 0o700), os.WriteFile(at+"/a/file", []byte(canary), 0o600),
		os.WriteFile(at+"/file", []byte(canary), 0o600)))
	for path, project := range map[string]string{at + "/a": "6", at + "/file": "6", at: "5"} {
		testfs.Run(t, "xfs_io", "-r", "-c", "chproj "+project, path)
	}
	testfs.Run(t, "xfs_io", "-r", "-c", "chattr +P", at)
	must(t, scrub.Path(t.Context(), at, ignore))
	if left := entries(t, at); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestSnapshotAsRoot checks that a volume is emptied whose root is a snapshot. That has an empty directory in place of
// each nested subvolume, which can be neither moved nor filled.
func TestSnapshotAsRoot(t *testing.T) {
	whole := testfs.New(t, "btrfs", 256)
	testfs.Run(t, "btrfs", "subvolume", "create", whole+"/a")
	for _, name := range []string{"nested", ".stowage-scrub"} {
		testfs.Run(t, "btrfs", "subvolume", "create", whole+"/a/"+name)
	}
	testfs.Run(t, "btrfs", "subvolume", "snapshot", "-r", whole+"/a", whole+"/b")
	at := t.TempDir()
	testfs.Bind(t, whole+"/b", at)
	must(t, scrub.Path(t.Context(), at, ignore))
	if left := entries(t, at); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
