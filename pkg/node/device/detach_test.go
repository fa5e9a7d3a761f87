package device

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/loops"
)

func TestDetachInUse(t *testing.T) {
	path := image(t, mib)
	d := open(t, path, mib, Options{Persistent: true})
	wantKind(t, Detach(t.Context(), path, briefly), backends.InUse)
	wantLoops(t, path, d.Path)
	if flags(t, d)&unix.LO_FLAGS_AUTOCLEAR != 0 {
		t.Error("a loop device that was to stay clears itself after a detach that was refused")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	wantLoops(t, path, d.Path)
	if err := Detach(t.Context(), path, enough); err != nil {
		t.Fatal(err)
	}
	wantLoops(t, path)
	if err := Detach(t.Context(), path, enough); err != nil {
		t.Errorf("detaching what is not attached: %v", err)
	}
}

// The device is claimed, as by a mount: nothing about it may change.
func TestDetachClaimed(t *testing.T) {
	path := image(t, mib)
	d := open(t, path, mib, Options{})
	claim, err := unix.Open(d.Path, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	before := flags(t, d)
	wantKind(t, Detach(t.Context(), path, briefly), backends.InUse)
	if flags(t, d) != before {
		t.Errorf("the flags are %#x, were %#x", flags(t, d), before)
	}
	if err := unix.Close(claim); err != nil {
		t.Fatal(err)
	}
}

// A process that only inspects the device does not make a detach fail.
func TestDetachWaits(t *testing.T) {
	path := image(t, mib)
	d := open(t, path, mib, Options{Persistent: true})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	look, err := os.Open(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- Detach(t.Context(), path, enough) }()
	// The look ends once the detach has begun, which shows in the flags.
	for {
		info, err := unix.IoctlLoopGetStatus64(int(look.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		if info.Flags&unix.LO_FLAGS_AUTOCLEAR != 0 {
			break
		}
	}
	if err := look.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	wantLoops(t, path)
}

func TestDetachMissing(t *testing.T) {
	if err := Detach(t.Context(), filepath.Join(t.TempDir(), "none.img"), enough); err != nil {
		t.Errorf("detaching an image that is not there: %v", err)
	}
}

func TestDetachDeletedImage(t *testing.T) {
	path := image(t, mib)
	d := open(t, path, mib, Options{Persistent: true})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantLoops(t, path, d.Path)
	if err := Detach(t.Context(), path, enough); err != nil {
		t.Fatal(err)
	}
	wantLoops(t, path)
}

// The directory of the image is gone too, and there was a symlink above it.
func TestDetachDeletedDirectory(t *testing.T) {
	dir, path := t.TempDir(), image(t, mib)
	link, volume := filepath.Join(dir, "pool"), filepath.Join(filepath.Dir(path), "volume")
	moved := filepath.Join(link, "volume", "image")
	for _, err := range []error{os.Symlink(filepath.Dir(path), link), os.Mkdir(volume, 0o700),
		os.Rename(path, filepath.Join(volume, "image"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d := open(t, moved, mib, Options{Persistent: true})
	if err := errors.Join(d.Close(), os.RemoveAll(volume)); err != nil {
		t.Fatal(err)
	}
	if err := Detach(t.Context(), moved, enough); err != nil {
		t.Fatal(err)
	}
	if name, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(d.Path), "loop/backing_file")); err == nil &&
		strings.HasPrefix(string(name), volume) {
		t.Errorf("%s holds %s still", d.Path, name)
	}
}

// A number says nothing about what a loop device holds now. After the image's own device was freed, its number may be
// that of another image's device, of a volume that is in use.
func TestDetachSparesOthers(t *testing.T) {
	path, other := image(t, mib), image(t, mib)
	d := open(t, other, mib, Options{Persistent: true})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(t.TempDir(), "gone.img")
	for name, detach := range map[string]func() error{
		"DetachFrom":             func() error { return DetachFrom(t.Context(), path, d.Major, d.Minor, 0, enough) },
		"DetachFrom, image gone": func() error { return DetachFrom(t.Context(), gone, d.Major, d.Minor, 0, enough) },
		"DetachDeleted": func() error {
			return DetachDeleted(t.Context(), "volume", d.Major, d.Minor, enough)
		},
		"Detach, found before it changed": func() error { return detachFound(t, path, d.Path) },
	} {
		if err := detach(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if found, err := FindLoops(t.Context(), other); err != nil || len(found) != 1 {
			t.Fatalf("%s took another image's loop device away: it has %v (%v)", name, found, err)
		}
	}
}

// detachFound is Detach of an image that was found to be attached to a loop device.
func detachFound(t *testing.T, path, node string) error {
	t.Helper()
	s, err := subjectOf(path)
	if err != nil {
		return err
	}
	defer s.close()
	_, err = loopDevice{path: node}.detach(t.Context(), s.held, enough)
	return err
}

// The image now has a loop device other than the known one.
func TestDetachFromFindsIt(t *testing.T) {
	path, other := image(t, mib), image(t, mib)
	for _, p := range []string{path, other} {
		if err := open(t, p, mib, Options{Persistent: true}).Close(); err != nil {
			t.Fatal(err)
		}
	}
	found, err := FindLoops(t.Context(), other)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	var stat unix.Stat_t
	if err := unix.Stat(found[0], &stat); err != nil {
		t.Fatal(err)
	}
	if err := DetachFrom(t.Context(), path, unix.Major(stat.Rdev), unix.Minor(stat.Rdev), 0, enough); err != nil {
		t.Fatal(err)
	}
	wantLoops(t, path)
	wantLoops(t, other, found[0])
}

func TestDetachDeleted(t *testing.T) {
	path := image(t, mib)
	d := open(t, path, mib, Options{Persistent: true})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	wantKind(t, DetachDeleted(t.Context(), "volume", d.Major, d.Minor, briefly), backends.InUse)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := DetachDeleted(t.Context(), "another", d.Major, d.Minor, enough); err != nil {
		t.Fatal(err)
	}
	wantLoops(t, path, d.Path)
	for range 2 { // the second time there is nothing to do
		if err := DetachDeleted(t.Context(), "volume", d.Major, d.Minor, enough); err != nil {
			t.Fatal(err)
		}
	}
	wantLoops(t, path)
	wantKind(t, DetachDeleted(t.Context(), "volume", 8, 0, enough), backends.Invalid)
	if err := DetachDeleted(t.Context(), "volume", loopMajor, 1<<19, enough); err != nil {
		t.Errorf("detaching a loop device that does not exist: %v", err)
	}
}

// A file may really have a name that ends like the kernel's name for a deleted file. Its loop device belongs to no
// image of the shorter name, whether that exists or not.
func TestDetachSparesAFileThatSeemsDeleted(t *testing.T) {
	path := image(t, mib)
	other := path + loops.Deleted
	if err := errors.Join(os.WriteFile(other, nil, 0o600), os.Truncate(other, mib)); err != nil {
		t.Fatal(err)
	}
	d := open(t, other, mib, Options{Persistent: true})
	t.Cleanup(func() { _ = Detach(context.WithoutCancel(t.Context()), other, enough) })
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		wantLoops(t, path)
		for name, detach := range map[string]func() error{
			"Detach":        func() error { return Detach(t.Context(), path, enough) },
			"DetachFrom":    func() error { return DetachFrom(t.Context(), path, d.Major, d.Minor, 0, enough) },
			"DetachDeleted": func() error { return DetachDeleted(t.Context(), "volume", d.Major, d.Minor, enough) },
			"Detach, found": func() error { return detachFound(t, path, d.Path) },
		} {
			if err := detach(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			wantLoops(t, other, d.Path)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
}

// Only its name says whose a deleted file was.
func TestIsDeletedOf(t *testing.T) {
	for name, want := range map[string]bool{
		"/pool/volumes/lv-1/image (deleted)":      true,
		"/pool/trash/lv-1.RANDOM/image (deleted)": true, // moved before it was removed
		"/images/lv-1 (deleted)":                  true,
		"/images/lv-1.img (deleted)":              true,
		"/pool/volumes/lv-1/image":                false,
		"/pool/volumes/lv-2/image (deleted)":      false,
		"/pool/volumes/lv-10/image (deleted)":     false,
		"/lv-1/of/another (deleted)":              false,
		"":                                        false,
	} {
		if isDeletedOf(name, "lv-1") != want {
			t.Errorf("%q is of the volume: want %t", name, want)
		}
	}
}

func TestRefreshRefuses(t *testing.T) {
	path := image(t, mib)
	_, err := Refresh(t.Context(), path)
	wantKind(t, err, backends.Invalid)
	_, err = Refresh(t.Context(), path+"x")
	wantKind(t, err, backends.NotFound)
}

func TestLockedImage(t *testing.T) {
	path := image(t, mib)
	located, err := locateImage(path)
	if err != nil {
		t.Fatal(err)
	}
	defer located.Close()
	guard, err := lockImage(t.Context(), located)
	if err != nil {
		t.Fatal(err)
	}
	defer guard.Close()
	synctest.Test(t, func(t *testing.T) { // time passes only during waits
		ctx, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
		defer cancel()
		_, err := Open(ctx, backends.Device{Path: path, Image: true}, Options{})
		wantKind(t, err, backends.Busy)
	})
}

// A sequence number identifies what a loop device holds when the image's name no longer does, and does not match a
// later user of the device's number.
func TestDetachFromKnowsARenamedImage(t *testing.T) {
	path := image(t, mib)
	d := open(t, path, mib, Options{Persistent: true})
	sequence, err := Sequence(d.File)
	if err := errors.Join(err, d.Close(), os.Rename(path, path+".moved")); err != nil {
		t.Fatal(err)
	}
	for _, other := range []uint64{0, sequence + 1} {
		if err := DetachFrom(t.Context(), path, d.Major, d.Minor, other, enough); err != nil {
			t.Fatal(err)
		}
		wantLoops(t, path+".moved", d.Path)
	}
	if err := DetachFrom(t.Context(), path, d.Major, d.Minor, sequence, enough); err != nil {
		t.Fatal(err)
	}
	wantLoops(t, path+".moved")
}
