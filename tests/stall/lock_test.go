package stall

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A lock that was given up is not kept if it comes later.
func TestLateLockIsGivenBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := lockFile(path, unix.LOCK_EX, lockPatience)
	if err != nil {
		t.Fatal(err)
	}
	// Stimulus: the lock is released later.
	if _, err := lockFile(path, unix.LOCK_SH, 50*time.Millisecond); err == nil {
		t.Error("two have the lock")
	}
	unlock(first)
	next, err := lockFile(path, unix.LOCK_EX, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	unlock(next)
}
