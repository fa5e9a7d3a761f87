package scrub_test

import (
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
