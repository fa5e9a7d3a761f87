package sample_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/sample"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// A pod that has filled the disk comes back, and the volume is deleted afterwards. None of this needs room.
func TestUseNeedsNoRoom(t *testing.T) {
	testfs.NeedRoot(t)
	var disk string
	h := backendtest.Over(sample.Definition(), func(tb testing.TB, options *backends.Options) {
		disk = smallDisk(tb)
		options.DataDir = disk
	})
	instance := h.Open(t)
	v, err := instance.Controller.Create(t.Context(), backends.Spec{Name: "one"})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, disk)
	for range 2 {
		if _, err := instance.Node.Source(t.Context(), backends.Attachment{Handle: v.Handle}); err != nil {
			t.Fatalf("Source on a full disk: %v", err)
		}
		instance = h.Reopen(t, instance)
		if !instance.Node.(backends.Releaser).Used(t.Context(), v.Handle) {
			t.Error("reopened on a full disk, the volume is not in use any more")
		}
		if err := instance.Node.(backends.Releaser).Release(t.Context(), v.Handle); err != nil {
			t.Fatalf("Release on a full disk: %v", err)
		}
		instance = h.Reopen(t, instance)
		if instance.Node.(backends.Releaser).Used(t.Context(), v.Handle) {
			t.Error("released and reopened on a full disk, the volume is in use still")
		}
	}
	if err := instance.Controller.Delete(t.Context(), v.Handle); err != nil {
		t.Errorf("Delete on a full disk: %v", err)
	}
}

// smallDisk mounts a disk with room for a few files, and returns the mount point.
func smallDisk(tb testing.TB) string {
	tb.Helper()
	disk := tb.TempDir()
	if err := unix.Mount("small", disk, "tmpfs", 0, "size=1m,nr_inodes=64"); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	return disk
}

// fill leaves no free block and no free inode on a disk.
func fill(tb testing.TB, disk string) {
	tb.Helper()
	testfs.Fill(tb, disk)
	var err error
	for i := 0; err == nil; i++ {
		err = os.WriteFile(filepath.Join(disk, fmt.Sprint("empty-", i)), nil, 0o600)
	}
	if !errors.Is(err, unix.ENOSPC) {
		tb.Fatal(err)
	}
}
