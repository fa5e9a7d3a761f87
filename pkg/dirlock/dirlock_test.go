package dirlock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/dirlock"
	"github.com/stowage-csi/stowage/pkg/failure"
)

func TestLock(t *testing.T) {
	dir := t.TempDir()
	first, err := dirlock.Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dirlock.Lock(dir); !failure.Is(err, failure.Busy) {
		t.Errorf("a second lock: %v, want Busy", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := dirlock.Lock(dir)
	if err != nil {
		t.Fatalf("a lock that was given back: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if _, err := dirlock.Lock(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a directory that is not there: %v", err)
	}
}
