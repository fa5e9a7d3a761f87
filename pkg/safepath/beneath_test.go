package safepath_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

func TestRelative(t *testing.T) {
	for _, good := range []string{"a", "a/b", "a b/c,d", "..a", "a..", ".hidden"} {
		if err := safepath.Relative(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "/", "/a", "a/", "a//b", "./a", "a/.", "a/../b", "../a", "a\x00",
		strings.Repeat("n", 256), strings.Repeat("a/", 2500) + "a"} {
		if err := safepath.Relative(bad); !failure.Is(err, failure.Invalid) {
			t.Errorf("%.40q: got %v, want Invalid", bad, err)
		}
	}
}

func TestOpenBeneath(t *testing.T) {
	dir := t.TempDir()
	for _, made := range []string{"root/a/b", "secret"} {
		if err := os.MkdirAll(filepath.Join(dir, made), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"root/a/file", "secret/file"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"up": "../secret", "absolute": filepath.Join(dir, "secret"), "inside": "a",
		"loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(dir, "root", name)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.Open(filepath.Join(dir, "root"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, path := range []string{"a", "a/b", "."} {
		opened, err := safepath.OpenBeneath(root, path)
		if err != nil {
			t.Errorf("%q: %v", path, err)
			continue
		}
		have, _ := opened.Stat()
		if want, _ := os.Stat(filepath.Join(dir, "root", path)); !os.SameFile(have, want) {
			t.Errorf("%q leads elsewhere", path)
		}
		opened.Close()
	}
	for path, want := range map[string]failure.Kind{
		"..": failure.Invalid, "../secret": failure.Invalid, "up": failure.Invalid, "up/x": failure.Invalid,
		"absolute": failure.Invalid,
		"inside":   failure.Invalid, "loop": failure.Invalid, "a/file": failure.Invalid, "none": failure.NotFound,
		"a/none/b": failure.NotFound,
	} {
		if _, err := safepath.OpenBeneath(root, path); !failure.Is(err, want) {
			t.Errorf("%q: got %v, want %s", path, err, want)
		}
	}
	file, err := safepath.OpenFileBeneath(root, "a/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if text, err := io.ReadAll(file); err != nil || string(text) != "root/a/file" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if _, err := safepath.OpenFileBeneath(root, "up/file"); !failure.Is(err, failure.Invalid) {
		t.Errorf("a file over a symlink: got %v, want Invalid", err)
	}
	if _, err := safepath.OpenFileBeneath(root, "a/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: got %v, want one that wraps fs.ErrNotExist", err)
	}
}

// FindAcross enters mounts on the way, and FindBeneath does not. Neither follows a symlink.
func TestFindAcross(t *testing.T) {
	root, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := safepath.FindBeneath(root, "proc/sys"); !failure.Is(err, failure.Invalid) {
		t.Errorf("FindBeneath into another filesystem: got %v, want Invalid", err)
	}
	found, err := safepath.FindAcross(root, "proc/sys")
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	have, _ := found.Stat()
	if want, _ := os.Stat("/proc/sys"); !os.SameFile(have, want) {
		t.Errorf("it leads to %s", have.Name())
	}
	for path, want := range map[string]failure.Kind{"proc/self": failure.Invalid, "proc/self/fd": failure.Invalid,
		"proc/../etc": failure.Invalid, "proc/none": failure.NotFound} {
		if _, err := safepath.FindAcross(root, path); !failure.Is(err, want) {
			t.Errorf("%q: got %v, want %s", path, err, want)
		}
	}
}
