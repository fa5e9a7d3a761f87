package spare

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/testfs"
)

func TestMain(m *testing.M) { os.Exit(mountns.IsolateInMemory(m.Run)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, path string) *Room {
	t.Helper()
	r, err := Open(path)
	must(t, err)
	return r
}

// has checks which notes exist, now and after a restart.
func has(t *testing.T, r *Room, want map[string]string) {
	t.Helper()
	for _, r := range []*Room{r, open(t, r.path)} {
		notes := map[string]string{}
		all, err := r.Notes()
		must(t, err)
		for key, note := range all {
			notes[key] = string(note)
			if have, err := r.Get(key); err != nil || string(have) != string(note) {
				t.Errorf("of %q there is %q, %v, and %q", key, have, err, note)
			}
		}
		if !maps.Equal(notes, want) {
			t.Errorf("the notes are %q, want %q", notes, want)
		}
	}
}

func TestNotes(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "spare"))
	hostile := "\x00\n/../" + strings.Repeat("ü", 100)
	for _, text := range []string{"one", "", "two and longer", strings.Repeat("n", 3500)} {
		must(t, r.Put(hostile, []byte(text)))
		must(t, r.Put("other", []byte("stays")))
		has(t, r, map[string]string{hostile: text, "other": "stays"})
	}
	for range 2 {
		must(t, r.Drop(hostile))
		has(t, r, map[string]string{"other": "stays"})
	}
	if note, err := r.Get(hostile); note != nil || err != nil {
		t.Errorf("of a note that was dropped there is %q, %v", note, err)
	}
	if err := r.Put("other", make([]byte, pageSize)); !failure.Is(err, failure.Exhausted) {
		t.Errorf("a long note: got %v, want Exhausted", err)
	}
	has(t, r, map[string]string{"other": "stays"})
}

func TestAllPagesAreUsed(t *testing.T) {
	r := open(t, filepath.Join(t.TempDir(), "spare"))
	want := map[string]string{}
	for i := range pages - 1 {
		key := fmt.Sprint("volume ", i)
		want[key] = "note"
		must(t, r.Put(key, []byte("note")))
	}
	const says = "for 255 notes, is taken by others: free some on the disk"
	if err := r.Put("more", nil); !failure.Is(err, failure.Exhausted) || !strings.Contains(err.Error(), says) {
		t.Errorf("note number %d: got %v, want Exhausted with %q", pages, err, says)
	}
	has(t, r, want)
	for key := range want { // The last page is for changes.
		want[key] = "another"
		must(t, r.Put(key, []byte("another")))
	}
	has(t, r, want)
	for key := range want {
		must(t, r.Drop(key))
	}
	has(t, r, map[string]string{})
}

// A kill between two writes, or during one, leaves the old note or the new one. A dropped note never comes back.
func TestCutShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spare")
	r := open(t, path)
	for i, text := range []string{"before", "after"} {
		data, err := page{turn: uint64(i + 1), key: "v", note: []byte(text)}.encode()
		must(t, err)
		must(t, r.write(2*i, data))
	}
	has(t, open(t, path), map[string]string{"v": "after"})
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = file.WriteAt([]byte("torn"), 2*pageSize+head)
	must(t, errors.Join(err, file.Close()))
	r = open(t, path)
	has(t, r, map[string]string{"v": "before"})
	must(t, r.Put("v", []byte("at last")))
	has(t, r, map[string]string{"v": "at last"})
	must(t, r.Drop("v"))
	has(t, r, map[string]string{})
}

// An incomplete file is created again. If it cannot be created, there is no room.
func TestFileIsNotWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "spare")
	must(t, os.WriteFile(path, []byte("short"), 0o600))
	must(t, os.WriteFile(path+draftEnding, []byte("left"), 0o600))
	must(t, open(t, path).Put("v", []byte("note")))
	if names, err := filepath.Glob(dir + "/*"); err != nil || !slices.Equal(names, []string{path}) {
		t.Errorf("there is %q, %v", names, err)
	}
	r, err := Open(filepath.Join(dir, "missing", "spare"))
	if err == nil {
		t.Error("a file in no directory was made")
	}
	for _, none := range []*Room{r, nil} {
		if err := none.Put("v", nil); !failure.Is(err, failure.Exhausted) {
			t.Errorf("Put without room: got %v, want Exhausted", err)
		}
		note, err := none.Get("v")
		notes, errNotes := none.Notes()
		if err := errors.Join(err, errNotes, none.Drop("v")); err != nil || note != nil || len(notes) > 0 {
			t.Errorf("without room there are notes %q and %q, %v", note, notes, err)
		}
	}
	must(t, os.Remove(path))
	r = open(t, path)
	must(t, os.Remove(path))
	if err := r.Put("v", nil); !failure.Is(err, failure.Unavailable) {
		t.Errorf("Put without the file: got %v, want Unavailable", err)
	}
}

// The notes of a file that cannot be read are unknown, until it can be read or is removed. They are not none.
func TestFileThatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "spare")
	must(t, open(t, path).Put("v", []byte("note")))
	must(t, os.Rename(path, path+".kept"))
	must(t, os.Symlink(path, path)) // Every look at it fails with ELOOP.
	r, err := Open(path)
	if !errors.Is(err, unix.ELOOP) {
		t.Errorf("Open: got %v, want too many links", err)
	}
	_, errGet := r.Get("v")
	_, errNotes := r.Notes()
	for what, err := range map[string]error{
		"Get": errGet, "Notes": errNotes, "Put": r.Put("w", []byte("other")), "Drop": r.Drop("v"),
	} {
		if !failure.Is(err, failure.Unavailable) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want Unavailable with %s", what, err, path)
		}
	}
	must(t, os.Remove(path))
	must(t, os.Rename(path+".kept", path))
	has(t, r, map[string]string{"v": "note"})
	must(t, r.Put("w", []byte("other")))
	has(t, r, map[string]string{"v": "note", "w": "other"})

	must(t, os.Remove(path))
	must(t, os.Symlink(path, path))
	r, err = Open(path)
	if err == nil {
		t.Error("a loop of links was opened")
	}
	must(t, os.Remove(path)) // as the error says
	must(t, r.Put("w", []byte("new")))
	has(t, r, map[string]string{"w": "new"})
}

func TestFullDisk(t *testing.T) {
	for fsType, size := range map[string]int64{"ext4": 32, "xfs": 300, "btrfs": 128} {
		t.Run(fsType, func(t *testing.T) {
			mount := testfs.New(t, fsType, size)
			r := open(t, filepath.Join(mount, "spare"))
			testfs.Fill(t, mount)
			want := map[string]string{}
			for i := range 2 * pages {
				key := fmt.Sprint("volume ", i%(pages/2))
				want[key] = fmt.Sprint("note ", i)
				must(t, r.Put(key, []byte(want[key])))
			}
			testfs.Run(t, "sync", "--file-system", mount) // the disk gets it, not only memory
			file, err := os.Open(r.path)
			must(t, err)
			must(t, errors.Join(unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED), file.Close()))
			has(t, r, want)
			for key := range want {
				must(t, r.Drop(key))
			}
			has(t, r, map[string]string{})
			if _, err := Open(filepath.Join(mount, "another")); !errors.Is(err, unix.ENOSPC) {
				t.Errorf("a second file: got %v, want no space left", err)
			}
		})
	}
}
