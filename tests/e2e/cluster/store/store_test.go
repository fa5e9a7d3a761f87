package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// item returns an item that writes its key and counts how often it was built.
func item(key string, made *atomic.Int32) Item {
	return Item{Name: "thing", Key: key, Make: func(_ context.Context, path string, progress *Progress) error {
		made.Add(1)
		fmt.Fprintln(progress, "writing", path)
		return os.WriteFile(path, []byte(key), 0o644)
	}}
}

func TestMakeOnce(t *testing.T) {
	var out bytes.Buffer
	s := &Store{Dir: filepath.Join(t.TempDir(), "store"), Out: &out}
	var made atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			path, err := s.Make(t.Context(), item("0123", &made))
			if err != nil {
				t.Error(err)
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != "0123" {
				t.Errorf("%s holds %q (%v)", path, text, err)
			}
		})
	}
	group.Wait()
	if made.Load() != 1 {
		t.Errorf("it was made %d times, not once", made.Load())
	}
	if !strings.Contains(out.String(), "made thing in") {
		t.Errorf("the report is %q", out.String())
	}
	if names := entries(t, s.Dir); names != "thing-0123" {
		t.Errorf("the store holds %s", names)
	}
}

func TestMakeFails(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Out: &bytes.Buffer{}}
	broken := errors.New("broken")
	_, err := s.Make(t.Context(), Item{Name: "thing", Key: "1",
		Make: func(_ context.Context, path string, _ *Progress) error {
			return errors.Join(os.WriteFile(path, []byte("half"), 0o644), broken)
		}})
	if !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	var made atomic.Int32
	path, err := s.Make(t.Context(), item("1", &made))
	if text, readErr := os.ReadFile(path); err != nil || readErr != nil || string(text) != "1" {
		t.Errorf("after a failure the entry holds %q (%v, %v)", text, err, readErr)
	}
	if names := entries(t, s.Dir); names != "thing-1" {
		t.Errorf("the store holds %s", names)
	}
}

func TestPrune(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Out: &bytes.Buffer{}}
	var made atomic.Int32
	old := time.Now().Add(-keep - time.Hour)
	for _, name := range []string{"thing-1", "thing-2", "thing-else-1"} {
		path := filepath.Join(s.Dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Chtimes(path, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	// An entry that is used stays.
	if _, err := s.Make(t.Context(), item("1", &made)); err != nil || made.Load() != 0 {
		t.Errorf("an entry that is there was made again (%v)", err)
	}
	if _, err := s.Make(t.Context(), item("3", &made)); err != nil {
		t.Error(err)
	}
	if names := entries(t, s.Dir); names != "thing-1 thing-3 thing-else-1" {
		t.Errorf("the store holds %s", names)
	}
}

func entries(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range list {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	// Stimulus: the lock is held until unlock is called.
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock: %v", err)
	}
	unlock()
	if _, err := os.Stat(path); err == nil {
		t.Error("the lock is there after it was unlocked")
	}
	again, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestKey(t *testing.T) {
	dir := t.TempDir()
	key := func(k *Key) string {
		t.Helper()
		text, err := k.String()
		if err != nil || len(text) != 16 {
			t.Errorf("the key is %q (%v)", text, err)
		}
		return text
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if key(NewKey("ab", "c")) == key(NewKey("a", "bc")) {
		t.Error("texts run into each other")
	}
	write("a.go", "package a")
	was, sources := key(NewKey().Files(dir)), key(NewKey().Sources(dir))
	write("a_test.go", "package a")
	if key(NewKey().Files(dir)) == was {
		t.Error("a new file does not change the key")
	}
	if key(NewKey().Sources(dir)) != sources {
		t.Error("a test changes the key of sources")
	}
	write("a.go", "package b")
	if key(NewKey().Sources(dir)) == sources {
		t.Error("a changed file does not change the key")
	}
	if _, err := NewKey().Files(filepath.Join(dir, "none")).String(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error for a file that is not there is %v", err)
	}
}
