package filesystem

import (
	"context"
	"crypto/sha256"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/tests/stall"
)

const mib = 1 << 20

// enough is how long to wait for an event that occurs at once on an idle machine.
const enough = 2 * time.Minute

// image creates a sparse file.
func image(t *testing.T, size int64) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "volume.img"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return f
}

// attach attaches an image to a loop device.
func attach(t *testing.T, f *os.File) *device.Device {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root, for loop devices")
	}
	var d *device.Device
	var err error
	stall.WithoutServers(t, func() {
		d, err = device.Open(t.Context(), backends.Device{Path: f.Name(), Image: true}, device.Options{})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.Close() // many tests have closed it already
		stall.WithoutServers(t, func() {
			if err := device.Detach(context.WithoutCancel(t.Context()), f.Name(), 2*time.Minute); err != nil {
				t.Errorf("cleaning up: %v", err)
			}
		})
	})
	return d
}

func put(t *testing.T, f *os.File, offset int64, text string) {
	t.Helper()
	if _, err := f.WriteAt([]byte(text), offset); err != nil {
		t.Fatal(err)
	}
}

func probe(t *testing.T, f *os.File) Found {
	t.Helper()
	size, err := device.SizeOf(f)
	if err != nil {
		t.Fatal(err)
	}
	found, err := Probe(t.Context(), f, size)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// tool runs a program that creates something; it returns false if the program is not installed.
func tool(t *testing.T, argv ...string) bool {
	t.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return false
	}
	if out, err := exec.CommandContext(t.Context(), path, argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", argv, err, out)
	}
	return true
}

func sum(t *testing.T, f *os.File) [sha256.Size]byte {
	t.Helper()
	hash := sha256.New()
	if _, err := io.Copy(hash, io.NewSectionReader(f, 0, 1<<40)); err != nil {
		t.Fatal(err)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

func wantKind(t *testing.T, err error, kind backends.Kind) {
	t.Helper()
	if !backends.Is(err, kind) {
		t.Errorf("got error %v (%s), want one of kind %s", err, backends.KindOf(err), kind)
	}
}

// needTools skips the test, visibly, if the tools for a type are not installed.
func needTools(t *testing.T, fsType string) {
	t.Helper()
	if err := Missing(fsType); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
}
