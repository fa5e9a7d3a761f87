package device

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/stall"
)

const mib = 1 << 20

// enough is how long to wait for an event that occurs at once on an idle machine.
const enough = 2 * time.Minute

// briefly is how long to wait for a process that does not close the device.
const briefly = 10 * time.Millisecond

// needRoot skips the test, visibly, if no loop devices can be created.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root, for loop devices")
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("SKIPPED: needs loop devices: %v", err)
	}
}

// image creates a sparse file that is detached when the test ends.
func image(t *testing.T, size int64) string {
	t.Helper()
	needRoot(t)
	stall.Apart(t)
	path := filepath.Join(t.TempDir(), "volume.img")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Detach(context.WithoutCancel(t.Context()), path, enough); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	return path
}

func open(t *testing.T, path string, size int64, opts Options) *Device {
	t.Helper()
	d, err := Open(t.Context(), backends.Device{Path: path, Image: true, Identity: backends.Identity{SizeBytes: size}},
		opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() }) // most tests have closed it already
	return d
}

func isUnopened(t *testing.T, file *os.File) bool {
	t.Helper()
	free, err := unopened(file)
	if err != nil {
		t.Error(err)
	}
	return free
}

func wantKind(t *testing.T, err error, kind backends.Kind) {
	t.Helper()
	if !backends.Is(err, kind) {
		t.Errorf("got error %v (%s), want one of kind %s", err, backends.KindOf(err), kind)
	}
}

func wantLoops(t *testing.T, path string, want ...string) {
	t.Helper()
	got, err := FindLoops(t.Context(), path)
	if err != nil || len(got) != len(want) {
		t.Fatalf("FindLoops(%s) = %v, %v, want %v", path, got, err, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("FindLoops(%s) = %v, want %v", path, got, want)
		}
	}
}

// wantFreed waits until an image has no loop device. An autoclear device goes with its last close, and other processes
// that look for their own devices open it for an instant.
func wantFreed(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(enough); ; {
		found, err := FindLoops(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("FindLoops(%s) = %v for %s, want none", path, found, enough)
		}
	}
}

func flags(t *testing.T, d *Device) uint32 {
	t.Helper()
	info, err := unix.IoctlLoopGetStatus64(int(d.File.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return info.Flags
}

func TestOpenImage(t *testing.T) {
	path := image(t, 8*mib)
	d := open(t, path, 8*mib, Options{})
	wantLoops(t, path, d.Path)
	if !d.Loop || d.Major != 7 || d.SizeBytes != 8*mib {
		t.Errorf("opened %+v, want a loop device of 8 MiB", d)
	}
	if flags(t, d)&unix.LO_FLAGS_AUTOCLEAR == 0 || flags(t, d)&unix.LO_FLAGS_READ_ONLY != 0 {
		t.Errorf("loop flags are %#x, want one that clears itself and can be written to", flags(t, d))
	}
	if sector, err := unix.IoctlGetInt(int(d.File.Fd()), unix.BLKSSZGET); err != nil || sector != logicalBlock {
		t.Errorf("the sector size is %d, %v, want %d", sector, err, logicalBlock)
	}
	if _, err := d.File.WriteAt([]byte("data"), 4096); err != nil {
		t.Errorf("writing: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	wantFreed(t, path)
	got := make([]byte, 4)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.ReadAt(got, 4096); err != nil || string(got) != "data" {
		t.Errorf("the image holds %q, %v, want what was written to the device", got, err)
	}
}

// The device is passed on before it is proven, whatever the proof says.
func TestOpenPassesOn(t *testing.T) {
	path := image(t, 8*mib)
	for _, want := range []int64{8 * mib, 9 * mib} {
		var sizes []int64
		opts := Options{Opened: func(device *os.File, size int64) {
			if _, err := device.ReadAt(make([]byte, 512), 0); err != nil {
				t.Error(err)
			}
			sizes = append(sizes, size)
		}}
		d, err := Open(t.Context(), backends.Device{Path: path, Image: true, Identity: backends.Identity{SizeBytes: want}},
			opts)
		if (err == nil) != (want == 8*mib) || len(sizes) != 1 || sizes[0] != 8*mib {
			t.Errorf("an image of 8 MiB for a volume of %d bytes: passed on with sizes %v, %v", want, sizes, err)
		}
		if err == nil {
			_ = d.Close() // read only
		}
	}
}

func TestOpenImageReadOnly(t *testing.T) {
	path := image(t, mib)
	d := open(t, path, mib, Options{ReadOnly: true})
	if _, err := d.File.WriteAt([]byte("x"), 0); err == nil {
		t.Error("a read-only device could be written to")
	}
	if flags(t, d)&unix.LO_FLAGS_READ_ONLY == 0 {
		t.Error("the loop device itself can be written to")
	}
	_, err := Open(t.Context(), backends.Device{Path: path, Image: true}, Options{})
	wantKind(t, err, backends.InUse)
}

func TestPersistent(t *testing.T) {
	path := image(t, mib)
	d := open(t, path, mib, Options{Persistent: true})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	wantLoops(t, path, d.Path)
	// Opened for a filesystem now: from here on it must clear itself, and it does.
	again := open(t, path, mib, Options{})
	if again.Path != d.Path {
		t.Errorf("attached to %s a second time, it is at %s", again.Path, d.Path)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	wantFreed(t, path)
	// And the other way round.
	first := open(t, path, mib, Options{})
	second := open(t, path, mib, Options{Persistent: true})
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Fatal(err)
	}
	wantLoops(t, path, second.Path)
	if err := Detach(t.Context(), path, enough); err != nil {
		t.Fatal(err)
	}
	wantLoops(t, path)
}

func TestNeverAttachedTwice(t *testing.T) {
	path := image(t, mib)
	var wait sync.WaitGroup
	devices := make([]*Device, 16)
	for i := range devices {
		wait.Go(func() {
			var err error
			devices[i], err = Open(t.Context(), backends.Device{Path: path, Image: true}, Options{})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, d := range devices {
		if d != nil {
			if d.Path != devices[0].Path {
				t.Errorf("attached to both %s and %s", d.Path, devices[0].Path)
			}
			defer d.Close()
		}
	}
	wantLoops(t, path, devices[0].Path)
}

// A hard link is another name of one image, which must not be attached under both.
func TestHardLinkIsSameImage(t *testing.T) {
	path := image(t, mib)
	link := path + ".link"
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	if a, b := open(t, path, mib, Options{}), open(t, link, mib, Options{}); a.Path != b.Path {
		t.Errorf("attached to both %s and %s", a.Path, b.Path)
	}
}

// Many images race for the same free loop device.
func TestManyImages(t *testing.T) {
	paths := make([]string, 12)
	for i := range paths {
		paths[i] = image(t, mib)
	}
	var wait sync.WaitGroup
	var mutex sync.Mutex
	seen := map[string]bool{}
	for _, path := range paths {
		wait.Go(func() {
			d, err := Open(t.Context(), backends.Device{Path: path, Image: true}, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			if seen[d.Path] {
				t.Errorf("%s was given out twice", d.Path)
			}
			seen[d.Path] = true
			t.Cleanup(func() { _ = d.Close() })
		})
	}
	wait.Wait()
}

func TestUnopened(t *testing.T) {
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
	if !isUnopened(t, guard) {
		t.Error("an image that nobody has open is not known to be so")
	}
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if isUnopened(t, guard) {
		t.Error("an image that is open is taken for one that is not")
	}
}

// Opening the image at the instant of the lease only waits. Neither side fails, and the kernel's signal that asks for
// the lease back does no harm.
func TestLeaseAgainstOpen(t *testing.T) {
	path := image(t, mib)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				stopped <- err
				return
			}
			_ = f.Close() // nothing was written
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// On a machine with one free processor the two may take turns for long: try this often, and then until they have met.
	granted, tries := 0, 0
	for deadline := time.Now().Add(enough); tries < 20_000 || granted%tries == 0 && time.Now().Before(deadline); tries++ {
		if isUnopened(t, f) {
			granted++
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if granted == 0 || granted == tries {
		t.Errorf("the lease was granted %d times of %d: the two never met", granted, tries)
	}
}

func TestGrownImageIsTakenOver(t *testing.T) {
	path := image(t, mib)
	d := open(t, path, mib, Options{Persistent: true})
	if err := os.Truncate(path, 3*mib); err != nil {
		t.Fatal(err)
	}
	if again := open(t, path, 3*mib, Options{Persistent: true}); again.SizeBytes != 3*mib {
		t.Errorf("the device has %d bytes, want the image's 3 MiB", again.SizeBytes)
	}
	if err := os.Truncate(path, 5*mib); err != nil {
		t.Fatal(err)
	}
	if size, err := Refresh(t.Context(), d.Path); err != nil || size != 5*mib {
		t.Errorf("Refresh = %d, %v, want 5 MiB", size, err)
	}
	if size, err := SizeOf(d.File); err != nil || size != 5*mib {
		t.Errorf("SizeOf = %d, %v, want 5 MiB", size, err)
	}
}

// A device is gone when the kernel shows none of its number; an empty loop device is not gone.
func TestGone(t *testing.T) {
	d := open(t, image(t, mib), mib, Options{})
	if Gone(d.Major, d.Minor) {
		t.Errorf("%s is gone", d)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if Gone(d.Major, d.Minor) {
		t.Errorf("%s is gone since it holds nothing", d)
	}
	const none = 1<<20 - 1
	if !Gone(d.Major, none) {
		t.Errorf("loop device %d is not gone", none)
	}
}

func TestOpenRefuses(t *testing.T) {
	path := image(t, mib)
	dir := filepath.Dir(path)
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		source backends.Device
		want   backends.Kind
	}{
		"image too small": {backends.Device{Path: path, Image: true, Identity: backends.Identity{SizeBytes: 2 * mib}},
			backends.Invalid},
		"image is a link":   {backends.Device{Path: link, Image: true}, backends.Invalid},
		"image is missing":  {backends.Device{Path: path + "x", Image: true}, backends.NotFound},
		"image is a folder": {backends.Device{Path: dir, Image: true}, backends.Invalid},
		"image is a FIFO":   {backends.Device{Path: filepath.Join(dir, "fifo"), Image: true}, backends.Invalid},
		"relative":          {backends.Device{Path: "volume.img", Image: true}, backends.Invalid},
		"dots": {backends.Device{Path: dir + "/../" + filepath.Base(dir) + "/volume.img", Image: true},
			backends.Invalid},
		"device is a file":    {backends.Device{Path: path}, backends.Invalid},
		"device is a FIFO":    {backends.Device{Path: filepath.Join(dir, "fifo")}, backends.Invalid},
		"device is missing":   {backends.Device{Path: "/dev/disk/by-id/none-such"}, backends.Unavailable},
		"device is /dev/null": {backends.Device{Path: "/dev/null"}, backends.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Open(t.Context(), test.source, Options{})
			wantKind(t, err, test.want)
			if err == nil {
				_ = d.Close() // the test has failed
			}
		})
	}
	wantFreed(t, path)
}

func TestOpenDevice(t *testing.T) {
	held := open(t, image(t, mib), mib, Options{})
	hint := filepath.Join(t.TempDir(), "by-id")
	if err := os.Symlink(held.Path, hint); err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), backends.Device{Path: hint, Identity: backends.Identity{SizeBytes: mib}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Path != held.Path || d.Number() != held.Number() {
		t.Errorf("%q led to %s, want %s", hint, d, held)
	}
	_, err = Open(t.Context(), backends.Device{Path: hint, Identity: backends.Identity{SizeBytes: mib + 1}}, Options{})
	wantKind(t, err, backends.Unavailable)
	_, err = Open(t.Context(), backends.Device{Path: hint, Identity: backends.Identity{Serial: "vol0123"}}, Options{})
	wantKind(t, err, backends.Unavailable)
}

func TestOpenAfterContext(t *testing.T) {
	path := image(t, mib)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Open(ctx, backends.Device{Path: path, Image: true}, Options{})
	wantKind(t, err, backends.Unavailable)
	wantLoops(t, path)
}

func TestSetReadAhead(t *testing.T) {
	d := open(t, image(t, mib), mib, Options{})
	if err := SetReadAhead(d, 256); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(sysfsDir(d.Major, d.Minor), "queue/read_ahead_kb"))
	if err != nil || string(got) != "256\n" {
		t.Errorf("the read-ahead is %q, %v, want 256 KiB", got, err)
	}
	wantKind(t, SetReadAhead(d, -1), backends.Invalid)
}
