package freeze

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/tests/testfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newImage creates an image, with a filesystem of the given type unless that is empty.
func newImage(t *testing.T, fsType string) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, 512<<20))
	if fsType != "" {
		testfs.Format(t, fsType, image)
	}
	return image
}

// mounted creates a filesystem on an image and mounts it.
func mounted(t *testing.T, fsType string) (image, dir string) {
	t.Helper()
	testfs.NeedRoot(t)
	image = newImage(t, fsType)
	return image, testfs.Mount(t, testfs.Attach(t, image))
}

func find(t *testing.T, image string) Use {
	t.Helper()
	use, err := Find(t.Context(), image)
	must(t, err)
	return use
}

// isFrozen reports whether a filesystem is frozen, by freezing and thawing it.
func isFrozen(t *testing.T, dir string) bool {
	t.Helper()
	file, err := os.Open(dir)
	must(t, err)
	defer file.Close()
	err = unix.IoctlSetInt(int(file.Fd()), fiFreeze, 0)
	if errors.Is(err, unix.EBUSY) {
		return true
	}
	must(t, err)
	must(t, unix.IoctlSetInt(int(file.Fd()), fiThaw, 0))
	return false
}

// setFrozen freezes or thaws a filesystem without the package's knowledge.
func setFrozen(t *testing.T, dir string, request uint) {
	t.Helper()
	file, err := os.Open(dir)
	must(t, err)
	defer file.Close()
	must(t, unix.IoctlSetInt(int(file.Fd()), request, 0))
}

func TestFind(t *testing.T) {
	testfs.NeedRoot(t)
	image := newImage(t, "ext4")
	if use := find(t, image); len(use.Loops) != 0 || len(use.Filesystems) != 0 || use.Raw {
		t.Errorf("an image that nobody uses has %+v", use)
	}
	device := testfs.Attach(t, image)
	stranger := newImage(t, "")
	must(t, os.Rename(stranger, filepath.Dir(stranger)+"/another"))
	testfs.Attach(t, filepath.Dir(stranger)+"/another")
	testfs.Attach(t, newImage(t, "")) // Another image of the same name.
	if use := find(t, image); len(use.Loops) != 1 || use.Loops[0] != device || !use.Raw {
		t.Errorf("an image that is attached to %s has %+v", device, use)
	}
	dir := testfs.Mount(t, device)
	again := t.TempDir()
	testfs.Bind(t, dir, again)
	use := find(t, image)
	if use.Raw || len(use.Filesystems) != 1 || len(use.Filesystems[0].mounts) != 2 {
		t.Errorf("an image that is mounted in two places has %+v", use)
	}
	must(t, os.Rename(image, image+" renamed"))
	if use := find(t, image+" renamed"); len(use.Filesystems) != 1 {
		t.Errorf("an image that was renamed has %+v", use)
	}
	second := testfs.Attach(t, image+" renamed")
	if use := find(t, image+" renamed"); !use.Raw || len(use.Loops) != 2 {
		t.Errorf("an image that is attached to %s too has %+v", second, use)
	}
	must(t, os.Rename(image+" renamed", image))
}

// An image that is attached under another name, a hard link in another directory, is found, too.
func TestFindOtherName(t *testing.T) {
	testfs.NeedRoot(t)
	image := newImage(t, "ext4")
	link := filepath.Join(filepath.Dir(image), "link", "other")
	must(t, os.Mkdir(filepath.Dir(link), 0o700))
	must(t, os.Link(image, link))
	device := testfs.Attach(t, link)
	testfs.Mount(t, device)
	if use := find(t, image); len(use.Loops) != 1 || use.Loops[0] != device || len(use.Filesystems) != 1 {
		t.Errorf("an image that is attached to %s by the name %s has %+v", device, link, use)
	}
}

// attachTo attaches an image to a loop device. The device frees itself once the returned file is closed and nothing is
// mounted from it. It retries while another process has the device.
func attachTo(t *testing.T, device, image string) *os.File {
	t.Helper()
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	must(t, err)
	defer file.Close()
	config := &unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
	for end := time.Now().Add(2 * time.Minute); ; <-time.After(time.Millisecond) {
		held, err := os.OpenFile(device, os.O_RDWR, 0)
		must(t, err)
		if err = unix.IoctlLoopConfigure(int(held.Fd()), config); err == nil {
			return held
		}
		must(t, held.Close())
		if time.Now().After(end) {
			t.Fatalf("attaching %s to %s: %v", image, device, err)
		}
	}
}

// The loop device of an image is given to another image after it was found, and before the mounts are read. The other
// image's filesystem is not frozen.
func TestAnotherImageIsNotFrozen(t *testing.T) {
	testfs.NeedRoot(t)
	image, other := newImage(t, ""), newImage(t, "ext4")
	device := testfs.Run(t, "losetup", "--find", "--show", image)
	found, err := loopsOver(t.Context(), image)
	testfs.Run(t, "losetup", "--detach", device)
	must(t, err)
	held := attachTo(t, device, other)
	defer held.Close()
	dir := testfs.Mount(t, device)
	mounts, err := mountinfo.GetMounts(nil)
	must(t, err)
	use := useOf(found, mounts)
	if len(use.Filesystems) != 1 {
		t.Fatalf("the other image counts as %+v: nothing is shown by this", use)
	}
	err = During(t.Context(), use.Filesystems, time.Minute, func(context.Context) error {
		t.Errorf("the work was done; the filesystem of another image is frozen: %t", isFrozen(t, dir))
		return nil
	})
	if !failure.Is(err, failure.Unavailable) {
		t.Errorf("got %v, want Unavailable", err)
	}
	for what, err := range map[string]error{"Thaw": second(use.Thaw(t.Context())), "Flush": use.Flush(t.Context())} {
		if !failure.Is(err, failure.Unavailable) {
			t.Errorf("%s: got %v, want Unavailable", what, err)
		}
	}
	must(t, During(t.Context(), find(t, other).Filesystems, time.Minute, func(context.Context) error { return nil }))
}

// second returns the error of a call that returns something else before it.
func second[T any](_ T, err error) error { return err }

func TestFindFails(t *testing.T) {
	if _, err := Find(t.Context(), filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Find for what is missing: got %v, want %v", err, os.ErrNotExist)
	}
	testfs.NeedRoot(t)
	image := newImage(t, "")
	testfs.Attach(t, image)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Find(ctx, image); !errors.Is(err, context.Canceled) {
		t.Errorf("Find with an ended context: got %v, want %v", err, context.Canceled)
	}
}

func TestDuringHoldsWritersBack(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			image, dir := mounted(t, fsType)
			use := find(t, image)
			wrote := make(chan error, 1)
			must(t, During(t.Context(), use.Filesystems, time.Minute, func(context.Context) error {
				if !isFrozen(t, dir) {
					t.Error("the filesystem is not frozen")
				}
				go func() { wrote <- os.WriteFile(filepath.Join(dir, "late"), []byte("late"), 0o600) }()
				select {
				case err := <-wrote:
					t.Errorf("a write went through: %v", err)
				// Stimulus: the writer is held back until the filesystem is thawed.
				case <-time.After(50 * time.Millisecond): // The writer must be held back for that long.
				}
				return nil
			}))
			must(t, <-wrote)
			if isFrozen(t, dir) {
				t.Error("the filesystem is still frozen")
			}
		})
	}
}

func TestDuringMakesTheImageWhole(t *testing.T) {
	image, dir := mounted(t, "xfs")
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o600))
	duplicate := filepath.Join(t.TempDir(), "copy")
	must(t, During(t.Context(), find(t, image).Filesystems, time.Minute, func(context.Context) error {
		testfs.Run(t, "cp", "--sparse=always", image, duplicate)
		return nil
	}))
	// Without "nouuid" the original must be unmounted first. A read-only mount with norecovery shows that no log has to be
	// replayed.
	other := t.TempDir()
	device := testfs.Attach(t, duplicate)
	testfs.Run(t, "mount", "-o", "ro,norecovery,nouuid", device, other)
	t.Cleanup(func() { must(t, unix.Unmount(other, 0)) })
	if data, err := os.ReadFile(filepath.Join(other, "file")); err != nil || string(data) != "kept" {
		t.Errorf("the copy has %q, %v; want %q", data, err, "kept")
	}
}

// TestDuringAlwaysThaws tests every way in which the work can end.
func TestDuringAlwaysThaws(t *testing.T) {
	image, dir := mounted(t, "ext4")
	filesystems := find(t, image).Filesystems
	boom := errors.New("boom")
	for _, test := range []struct {
		name  string
		limit time.Duration
		work  func(ctx context.Context, cancel func()) error
		want  error
	}{
		{"done", time.Minute, func(context.Context, func()) error { return nil }, nil},
		{"failed", time.Minute, func(context.Context, func()) error { return boom }, boom},
		{"context ends", time.Minute, func(ctx context.Context, cancel func()) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}, context.Canceled},
		{"context ends, work says nothing", time.Minute, func(_ context.Context, cancel func()) error {
			cancel()
			return nil
		}, context.Canceled},
		{"limit", 10 * time.Millisecond, func(ctx context.Context, _ func()) error {
			<-ctx.Done()
			return ctx.Err()
		}, ErrLimit},
		// The work itself writes to the frozen filesystem: only the thaw at the limit lets it go on.
		{"deadlock", 50 * time.Millisecond, func(context.Context, func()) error {
			return os.WriteFile(filepath.Join(dir, "deadlock"), []byte("text"), 0o600)
		}, ErrLimit},
		{"thawed by somebody else", time.Minute, func(context.Context, func()) error {
			setFrozen(t, dir, fiThaw)
			return nil
		}, ErrThawed},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := During(ctx, filesystems, test.limit, func(ctx context.Context) error { return test.work(ctx, cancel) })
			if !errors.Is(err, test.want) || (test.want == nil) != (err == nil) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if isFrozen(t, dir) {
				t.Error("the filesystem is still frozen")
			}
		})
	}
	t.Run("panics", func(t *testing.T) {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = During(t.Context(), filesystems, time.Minute, func(context.Context) error { panic(boom) })
		}()
		if isFrozen(t, dir) {
			t.Error("the filesystem is still frozen")
		}
	})
}

func TestDuringFreezesAllOrNone(t *testing.T) {
	imageOne, one := mounted(t, "ext4")
	imageTwo, two := mounted(t, "ext4")
	filesystems := append(find(t, imageOne).Filesystems, find(t, imageTwo).Filesystems...)
	must(t, During(t.Context(), filesystems, time.Minute, func(context.Context) error {
		if !isFrozen(t, one) || !isFrozen(t, two) {
			t.Error("not both are frozen")
		}
		return nil
	}))
	setFrozen(t, two, fiFreeze)
	err := During(t.Context(), filesystems, time.Minute, func(context.Context) error {
		t.Error("the work was done")
		return nil
	})
	if !errors.Is(err, unix.EBUSY) {
		t.Errorf("when one is frozen by somebody else: got %v, want %v", err, unix.EBUSY)
	}
	if isFrozen(t, one) {
		t.Error("the first one is still frozen")
	}
	if !isFrozen(t, two) {
		t.Error("what somebody else froze was thawed")
	}
	setFrozen(t, two, fiThaw)
}

func TestDuringWithoutFilesystems(t *testing.T) {
	done := false
	must(t, During(t.Context(), nil, time.Nanosecond, func(context.Context) error {
		done = true
		return nil
	}))
	if !done {
		t.Error("the work was not done")
	}
}

func TestDuringWithAnEndedContext(t *testing.T) {
	image, dir := mounted(t, "ext4")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := During(ctx, find(t, image).Filesystems, time.Minute, func(context.Context) error {
		t.Error("the work was done")
		return nil
	})
	if !errors.Is(err, context.Canceled) || isFrozen(t, dir) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// TestFreezeAfterTheTimeRanOut tests the race in which FIFREEZE takes longer than the limit.
func TestFreezeAfterTheTimeRanOut(t *testing.T) {
	image, dir := mounted(t, "ext4")
	var h holder
	defer h.close()
	must(t, h.open(t.Context(), find(t, image).Filesystems))
	h.giveUp()
	if err := h.freeze(); !errors.Is(err, ErrLimit) {
		t.Errorf("got %v, want %v", err, ErrLimit)
	}
	if isFrozen(t, dir) {
		t.Error("the filesystem is still frozen")
	}
}

func TestThawAfterAKill(t *testing.T) {
	image, dir := mounted(t, "ext4")
	use := find(t, image)
	setFrozen(t, dir, fiFreeze)
	if thawed, err := use.Thaw(t.Context()); err != nil || !thawed || isFrozen(t, dir) {
		t.Errorf("Thaw of what is frozen: %t, %v", thawed, err)
	}
	if thawed, err := use.Thaw(t.Context()); err != nil || thawed {
		t.Errorf("Thaw of what is not frozen: %t, %v", thawed, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := use.Thaw(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Thaw with an ended context: got %v, want %v", err, context.Canceled)
	}
}

func TestFlush(t *testing.T) {
	image, dir := mounted(t, "ext4")
	raw := newImage(t, "")
	device := testfs.Attach(t, raw)
	const text = "text that is not elsewhere on the image"
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o600))
	must(t, os.WriteFile(device, []byte(text), 0o600))
	for _, path := range []string{image, raw} {
		must(t, find(t, path).Flush(t.Context()))
		if out := testfs.Run(t, "grep", "-c", "--text", text, path); out == "0" {
			t.Errorf("%s does not have what was written", path)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, path := range []string{image, raw} {
		if err := find(t, path).Flush(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Flush with an ended context: got %v, want %v", err, context.Canceled)
		}
	}
}

func TestOverMountedPlacesAreNotMistaken(t *testing.T) {
	image, dir := mounted(t, "ext4")
	other := testfs.New(t, "ext4", 32)
	use := find(t, image)
	testfs.Bind(t, other, dir)
	err := During(t.Context(), use.Filesystems, time.Minute, func(context.Context) error { return nil })
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a filesystem that cannot be reached: got %v, want %v", err, os.ErrNotExist)
	}
	for what, call := range map[string]func() error{
		"Thaw":  func() error { _, err := use.Thaw(t.Context()); return err },
		"Flush": func() error { return use.Flush(t.Context()) },
	} {
		if err := call(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s of what cannot be reached: got %v, want %v", what, err, os.ErrNotExist)
		}
	}
	second := t.TempDir()
	testfs.Run(t, "mount", use.Loops[0], second)
	t.Cleanup(func() { must(t, unix.Unmount(second, 0)) })
	must(t, During(t.Context(), find(t, image).Filesystems, time.Minute, func(context.Context) error {
		if isFrozen(t, other) || !isFrozen(t, second) {
			t.Error("the wrong filesystem is frozen")
		}
		return nil
	}))
}

func TestDevice(t *testing.T) {
	image, dir := mounted(t, "btrfs")
	filesystems := find(t, image).Filesystems
	testfs.Run(t, "btrfs", "subvolume", "create", filepath.Join(dir, "sub"))
	for path, want := range map[string]bool{dir: true, filepath.Join(dir, "sub"): true, t.TempDir(): false} {
		if device, err := Device(path); err != nil || (device == filesystems[0].Device) != want {
			t.Errorf("Device(%s) is %d, %v; is it to be %d: %t", path, device, err, filesystems[0].Device, want)
		}
	}
	if _, err := Device(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Device of what is missing: got %v, want %v", err, os.ErrNotExist)
	}
}

func TestErrorsSayWhat(t *testing.T) {
	f := Filesystem{Device: unix.Mkdev(7, 3)}
	if _, err := f.open(); err == nil || !strings.Contains(err.Error(), "7:3") {
		t.Errorf("got %v, want the device 7:3 in it", err)
	}
	if err := flushDevice(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want %v", err, os.ErrNotExist)
	}
}
