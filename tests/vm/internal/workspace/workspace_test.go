package workspace

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), "sleep", "300")
}

func gone(p *Process) bool {
	select {
	case <-p.Done():
		return true
	case <-time.After(2 * time.Minute):
		return false
	}
}

func TestRemoveEndsProcesses(t *testing.T) {
	w, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.Start(sleeper(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(); err != nil {
		t.Fatal(err)
	}
	if !gone(p) {
		t.Error("the process runs on")
	}
	if _, err := os.Stat(w.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is still there (%v)", err)
	}
}

// A run ends the processes that a dead run left, but not those of a concurrent run.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	dead, err := New(parent)
	if err != nil {
		t.Fatal(err)
	}
	left, err := dead.Start(sleeper(t))
	if err != nil {
		t.Fatal(err)
	}
	alive, err := New(parent)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := alive.Start(sleeper(t))
	if err != nil {
		t.Fatal(err)
	}
	// An ID that belongs to another process by now: this one.
	record := filepath.Join(dead.Path(records), strconv.Itoa(os.Getpid()))
	if err := os.WriteFile(record, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dead.lock.Close(); err != nil { // as the kernel does when a process dies
		t.Fatal(err)
	}
	next, err := New(parent)
	if err != nil {
		t.Fatal(err)
	}
	if !gone(left) {
		t.Error("the dead run's process runs on")
	}
	if _, err := os.Stat(dead.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the dead run's folder is still there (%v)", err)
	}
	select {
	case <-kept.Done():
		t.Error("a process of a run that is alive was ended")
	default:
	}
	if err := errors.Join(alive.Remove(), next.Remove()); err != nil {
		t.Error(err)
	}
}

func TestStartFails(t *testing.T) {
	w, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Start(exec.CommandContext(t.Context(),
		filepath.Join(w.Path(), "missing"))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want ErrNotExist", err)
	}
	if err := w.Remove(); err != nil {
		t.Error(err)
	}
}
