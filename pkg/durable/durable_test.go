package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// names lists a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list
}

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWriteNewNeverReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := WriteNew(path, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := WriteNew(path, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("the second WriteNew: got %v, want %v", err, fs.ErrExist)
	}
	if have := contents(t, path); have != "first" {
		t.Errorf("the file has %q, want %q", have, "first")
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path, draft := filepath.Join(dir, "file"), filepath.Join(dir, "draft")
	if err := os.WriteFile(draft, []byte("left by a crash, and longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"made", "replaced"} {
		if err := Replace(path, draft, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if have := contents(t, path); have != text {
			t.Errorf("the file has %q, want %q", have, text)
		}
	}
	if have := names(t, dir); !slices.Equal(have, []string{"file"}) {
		t.Errorf("the directory has %q, want the file only", have)
	}
}

func TestReplaceThatFailsLeavesTheOldFileAndNoDraft(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a directory")
	if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, filepath.Join(dir, "draft"), nil); err == nil {
		t.Error("Replace of a directory succeeded")
	}
	if err := Replace(filepath.Join(dir, "missing", "file"), filepath.Join(dir, "missing", "draft"),
		nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Replace in a missing directory: got %v, want %v", err, fs.ErrNotExist)
	}
	if err := Replace(path, path, nil); err == nil {
		t.Error("Replace with a draft that cannot be removed succeeded")
	}
	if have := names(t, dir); !slices.Equal(have, []string{"a directory"}) {
		t.Errorf("the directory has %q, want what it had", have)
	}
}

func TestMoveNewNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil { // rename(2) would replace an empty directory.
			t.Fatal(err)
		}
	}
	if err := MoveNew(filepath.Join(dir, "one"), filepath.Join(dir, "two")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("MoveNew to what is there: got %v, want %v", err, fs.ErrExist)
	}
	if err := MoveNew(filepath.Join(dir, "one"), filepath.Join(dir, "three")); err != nil {
		t.Errorf("MoveNew: %v", err)
	}
	if have := names(t, dir); !slices.Equal(have, []string{"three", "two"}) {
		t.Errorf("the directory has %q, want three and two", have)
	}
}

func TestSync(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(SyncDir(dir), SyncFile(file)); err != nil {
		t.Error(err)
	}
	missing := filepath.Join(dir, "missing")
	for what, sync := range map[string]func(string) error{"SyncDir": SyncDir, "SyncFile": SyncFile} {
		if err := sync(missing); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of what is missing: got %v, want %v", what, err, fs.ErrNotExist)
		}
	}
	if _, err := os.Lstat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a sync made what was missing: %v", err)
	}
}

func TestMakeAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := MakeAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		t.Errorf("got %v, %v", info, err)
	}
	file := filepath.Join(path, "file")
	if err := WriteNew(file, nil); err != nil {
		t.Fatal(err)
	}
	if err := MakeAll(filepath.Join(file, "d"), 0o700); err == nil {
		t.Error("a directory was made below a file")
	}
}
