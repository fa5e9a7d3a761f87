package orchestrator

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestDetachLeavesOthersAlone frees a loop device that has another file by then, as happens if its mount was removed
// just before.
func TestDetachLeavesOthersAlone(t *testing.T) {
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	testfs.NeedRoot(t)
	device := testfs.Run(t, "losetup", "--find", "--show", image)
	mine, err := readLoop(filepath.Join("/sys/block", filepath.Base(device), "loop/backing_file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mine.detach() }) // if the test has failed
	earlier := mine
	earlier.backing = filepath.Join(t.TempDir(), "image")
	if err := earlier.detach(); err != nil {
		t.Error(err)
	}
	if found, err := loopsOf([]string{filepath.Dir(image)}); err != nil || len(found) != 1 {
		t.Errorf("after another's was freed, the loop devices are %v, %v", found, err)
	}
	if err := os.Remove(image); err != nil {
		t.Fatal(err)
	}
	if err := mine.detach(); err != nil {
		t.Error(err)
	}
	// Another process may have it open for a moment.
	for end := time.Now().Add(2 * time.Minute); ; <-time.After(10 * time.Millisecond) {
		found, err := loopsOf([]string{filepath.Dir(image)})
		if err == nil && len(found) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it is not freed: %v, %v", found, err)
		}
	}
}
