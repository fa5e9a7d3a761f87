package plants

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// overlay applies the patch to a copy of the files that it changes, and returns a build overlay with the copy.
func (p Plant) overlay(t *testing.T) (list string) {
	t.Helper()
	dir, replace := t.TempDir(), map[string]string{}
	for _, file := range p.files {
		copyFile(t, filepath.Join(p.root, file), filepath.Join(dir, file))
	}
	run(t, dir, "git", "apply", p.patch)
	for _, file := range p.files {
		replace[filepath.Join(p.root, file)] = ""
		if _, err := os.Lstat(filepath.Join(dir, file)); err == nil {
			replace[filepath.Join(p.root, file)] = filepath.Join(dir, file)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return list
}

// copyFile copies a file, which may be missing: the patch may create it.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, text, 0o600)); err != nil {
		t.Fatal(err)
	}
}
