package device

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func TestDetachInUse(t *testing.T) {
	path := image(t, mib)
	d := open(t, path, mib, Options{Persistent: true})
	wantKind(t, Detach(t.Context(), path), backends.InUse)
	wantLoops(t, path, d.Path)
	if flags(t, d)&unix.LO_FLAGS_AUTOCLEAR != 0 {
		t.Error("a loop device that was to stay clears itself after a detach that was refused")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	wantLoops(t, path, d.Path)
	if err := Detach(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	wantLoops(t, path)
	if err := Detach(t.Context(), path); err != nil {
		t.Errorf("detaching what is not attached: %v", err)
	}
}

// Somebody claims the device, as a mount does: nothing about it may change.
func TestDetachClaimed(t *testing.T) {
	path := image(t, mib)
	d := open(t, path, mib, Options{})
	claim, err := unix.Open(d.Path, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	before := flags(t, d)
	wantKind(t, Detach(t.Context(), path), backends.InUse)
	if flags(t, d) != before {
		t.Errorf("the flags are %#x, were %#x", flags(t, d), before)
	}
	if err := unix.Close(claim); err != nil {
		t.Fatal(err)
	}
}

// Whoever only takes a look does not make a detach fail.
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
	go func() { done <- Detach(t.Context(), path) }()
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
	if err := Detach(t.Context(), filepath.Join(t.TempDir(), "none.img")); err != nil {
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
	if err := Detach(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	wantLoops(t, path)
}

func TestDetachDevice(t *testing.T) {
	path := image(t, mib)
	d := open(t, path, mib, Options{Persistent: true})
	wantKind(t, DetachDevice(t.Context(), d.Major, d.Minor), backends.InUse)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is nothing to do
		if err := DetachDevice(t.Context(), d.Major, d.Minor); err != nil {
			t.Fatal(err)
		}
	}
	wantLoops(t, path)
	wantKind(t, DetachDevice(t.Context(), 8, 0), backends.Invalid)
	if err := DetachDevice(t.Context(), loopMajor, 1<<19); err != nil {
		t.Errorf("detaching a loop device that does not exist: %v", err)
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
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
	defer cancel()
	_, err = Open(ctx, backends.Device{Path: path, Image: true}, Options{})
	wantKind(t, err, backends.Busy)
}
