package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/spare"
)

// roomy opens a ledger with spare room.
func roomy(t *testing.T, dir, boot string) (*Ledger, Report) {
	t.Helper()
	room, err := spare.Open(filepath.Join(dir, "spare"))
	if err != nil {
		t.Fatal(err)
	}
	l, report, err := Open(t.Context(), dir, boot, room)
	if err != nil {
		t.Fatal(err)
	}
	return l, report
}

// withoutRoom changes a volume's record while its disk is full, and leaves the file as it was.
func withoutRoom(t *testing.T, l *Ledger, volume string, change func() error) error {
	t.Helper()
	path, aside := l.store.path(volume), l.store.path(volume)+".aside"
	there := os.Rename(path, aside) == nil
	if err := errors.Join(os.Symlink("/dev/full", path), os.Symlink("/dev/full", path+tempEnding)); err != nil {
		t.Fatal(err)
	}
	failed := change()
	err := os.Remove(path)
	if there {
		err = errors.Join(err, os.Rename(aside, path))
	}
	if err != nil {
		t.Fatal(err)
	}
	return failed
}

// A record that has no room in the file takes precedence over the file, until there is room again.
func TestNoRoom(t *testing.T) {
	for _, before := range []Record{{Volume: "a"}, sample("a").WithoutPublication("/target/a")} {
		dir := t.TempDir()
		l, _ := roomy(t, dir, "boot")
		put(t, l, before)
		if err := withoutRoom(t, l, "a", func() error { return l.Put(sample("a")) }); err != nil {
			t.Fatal(err)
		}
		again, report := roomy(t, dir, "boot")
		got := again.Get("a")
		if !reflect.DeepEqual(got, sample("a")) || again.Owner("/target/a") != "a" || report.Loaded != 1 {
			t.Errorf("after %+v, the record in the room is read as %+v, %+v", before, got, report)
		}
		less := sample("a").WithoutPublication("/target/a")
		put(t, again, less)
		last, _ := roomy(t, dir, "boot")
		if !slices.Equal(last.Get("a").Paths(), less.Paths()) || last.Owner("/target/a") != "" {
			t.Errorf("with room again, the record is read as %+v", last.Get("a"))
		}
		if err := withoutRoom(t, again, "a", func() error { return again.Put(sample("a")) }); err != nil {
			t.Fatal(err)
		}
		put(t, again, Record{Volume: "a"})
		last, report = roomy(t, dir, "boot")
		if !last.Get("a").Empty() || report.Loaded+report.Stale+len(report.SetAside) != 0 {
			t.Errorf("after it was removed, the record is read as %+v, %+v", last.Get("a"), report)
		}
	}
}

// While the disk is full, 255 volumes come into use. The next one is refused, and the error says that the room is
// taken.
func TestRoomIsTaken(t *testing.T) {
	l, _ := roomy(t, t.TempDir(), "boot")
	for n := range 255 {
		if err := l.store.room.Put(fmt.Sprint(n), nil); err != nil {
			t.Fatalf("note %d: %v", n, err)
		}
	}
	err := withoutRoom(t, l, "a", func() error { return l.Put(sample("a")) })
	const says = "for 255 notes, is taken by others: free some on the disk"
	if !backends.Is(err, backends.Unavailable) || !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want Unavailable for want of space, with %q", err, says)
	}
}

// A path that passed from one volume to another while the disk was full belongs to the other after a restart, whether
// the other's record is in the spare room or in its file.
func TestPathsChangeHands(t *testing.T) {
	for range 20 { // The room keeps its notes in no order.
		for _, pair := range [][2]string{{"a", "b"}, {"b", "a"}} {
			for _, full := range []bool{true, false} {
				changeHands(t, pair[0], pair[1], full)
			}
		}
	}
}

func changeHands(t *testing.T, from, to string, full bool) {
	t.Helper()
	dir, before, after := t.TempDir(), sample(from), sample(to)
	before.Published[0].Target, after.Published[0].Target = "/target", "/target"
	l, _ := roomy(t, dir, "boot")
	put(t, l, before)
	left := func() error { return l.Drop(before.WithoutPublication("/target")) }
	err := withoutRoom(t, l, from, left)
	if taken := func() error { return l.Put(after) }; full {
		err = errors.Join(err, withoutRoom(t, l, to, taken))
	} else {
		err = errors.Join(err, taken())
	}
	if err != nil {
		t.Fatal(err)
	}
	again, report := roomy(t, dir, "boot")
	if owner := again.Owner("/target"); owner != to || len(report.SetAside) > 0 || report.Loaded != 2 {
		t.Fatalf("from %s to %s, full %t: the path is of %q, %+v", from, to, full, owner, report)
	}
}

// While the spare room cannot be read, a volume's file may be older than its record there. So neither counts, and no
// volume is known until the room can be read.
func TestRoomThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	l, _ := roomy(t, dir, "boot")
	put(t, l, sample("a").WithoutPublication("/target/a"))
	if err := withoutRoom(t, l, "a", func() error { return l.Put(sample("a")) }); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "spare")
	if err := errors.Join(os.Rename(path, path+".kept"), os.Symlink(path, path)); err != nil {
		t.Fatal(err)
	}
	room, err := spare.Open(path)
	if !errors.Is(err, unix.ELOOP) {
		t.Fatalf("opening the room: %v, want too many links", err)
	}
	l, report, err := Open(t.Context(), dir, "boot", room)
	if err != nil || len(report.Unread) != 1 || report.Loaded != 0 {
		t.Fatalf("a ledger whose room cannot be read: %+v, %v", report, err)
	}
	wantUnknown(t, l, "a", path)
	wantUnknown(t, l, "b", path)
	if err := errors.Join(os.Remove(path), os.Rename(path+".kept", path)); err != nil {
		t.Fatal(err)
	}
	if report, err := l.Known(t.Context(), "b"); err != nil || !report.All || report.Loaded != 1 {
		t.Errorf("the room could be read: %+v, %v", report, err)
	}
	wantKnown(t, l, Record{Volume: "b"})
	wantKnown(t, l, sample("a"))
}

// A note in the spare room that is of another boot, or no record, is ignored and removed.
func TestRoomIsCleared(t *testing.T) {
	dir := t.TempDir()
	l, _ := roomy(t, dir, "earlier")
	if err := withoutRoom(t, l, "a", func() error { return l.Put(sample("a")) }); err != nil {
		t.Fatal(err)
	}
	if err := l.store.room.Put("b", []byte("no record")); err != nil {
		t.Fatal(err)
	}
	now, report := roomy(t, dir, "now")
	if now.Volumes() != 0 || report.Stale != 1 || len(report.SetAside) != 1 {
		t.Errorf("%d volumes are known, %+v", now.Volumes(), report)
	}
	if _, report := roomy(t, dir, "now"); report.Stale != 0 || len(report.SetAside) != 0 {
		t.Errorf("the second start found %+v", report)
	}
}
