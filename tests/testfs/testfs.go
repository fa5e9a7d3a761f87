package testfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// NeedRoot skips a test that mounts if it does not run as root.
func NeedRoot(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("NOT RUN: loop devices and mounts need root")
	}
}

// Run runs a command and returns its output. It skips the test if the command is not installed, and fails the test if
// the command fails.
func Run(tb testing.TB, name string, args ...string) string {
	tb.Helper()
	if _, err := exec.LookPath(name); err != nil {
		tb.Skipf("NOT RUN: %s is not installed", name)
	}
	output, err := exec.CommandContext(tb.Context(), name, args...).CombinedOutput()
	if err != nil {
		tb.Fatalf("%s %q: %v\n%s", name, args, err, output)
	}
	return strings.TrimSpace(string(output))
}

// undo runs a command at the end of the test, when its context has ended, with retries: a process that inspects all
// loop devices may have one open for a moment, which keeps the device and the filesystem of its file busy.
func undo(tb testing.TB, name string, args ...string) {
	tb.Cleanup(func() {
		if output, err := persist(context.Background(), name, args...); err != nil {
			tb.Errorf("cleaning up: %s %q: %v\n%s", name, args, err, output)
		}
	})
}

// persist runs a command until it succeeds, for two minutes at most, and returns its last output.
func persist(ctx context.Context, name string, args ...string) (output []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if output, err = exec.CommandContext(ctx, name, args...).CombinedOutput(); err == nil {
			return output, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return output, err
		}
	}
}

// New mounts a new filesystem of the type and returns the mount point.
func New(tb testing.TB, fsType string, sizeMiB int64) string {
	tb.Helper()
	NeedRoot(tb)
	file := filepath.Join(tb.TempDir(), "filesystem")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.Truncate(file, sizeMiB<<20); err != nil {
		tb.Fatal(err)
	}
	Format(tb, fsType, file)
	return Mount(tb, Attach(tb, file))
}

// Fill uses up all space on the filesystem of a directory, with a file "filler" in it. New names can still be created.
func Fill(tb testing.TB, dir string) {
	tb.Helper()
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = filler.Close() }() // Its content is never read.
	for _, size := range []int{1 << 20, 4096, 512} {
		for err == nil {
			_, err = filler.Write(make([]byte, size))
		}
		if errors.Is(err, unix.ENOSPC) {
			err = filler.Sync()
		}
		if err != nil && !errors.Is(err, unix.ENOSPC) {
			tb.Fatal(err)
		}
		err = nil
	}
}

// Format creates a filesystem on an image or device.
func Format(tb testing.TB, fsType, path string) {
	tb.Helper()
	force := "-f"
	if fsType == "ext4" {
		force = "-F"
	}
	Run(tb, "mkfs."+fsType, "-q", force, path)
}

// Attach attaches an image to a loop device and returns the device's path. It is detached at the end of the test, and
// also if the test is killed: the device clears itself once neither this process nor a mount uses it.
func Attach(tb testing.TB, image string) string {
	tb.Helper()
	NeedRoot(tb)
	device := Run(tb, "losetup", "--find", "--show", image)
	f, err := os.Open(device)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = f.Close() }) // It was only kept open.
	undo(tb, "losetup", "--detach", device)
	info, err := unix.IoctlLoopGetStatus64(int(f.Fd()))
	if err != nil {
		tb.Fatalf("reading the status of %s: %v", device, err)
	}
	info.Flags |= unix.LO_FLAGS_AUTOCLEAR
	if err := unix.IoctlLoopSetStatus64(int(f.Fd()), info); err != nil {
		tb.Fatalf("having %s clear itself: %v", device, err)
	}
	return device
}

// Partition creates a partition of a loop device that only the kernel knows, and returns its node. It is removed at the
// end of the test.
func Partition(tb testing.TB, device string, number int, offset, size int64) string {
	tb.Helper()
	NeedRoot(tb)
	const sector = 512
	Run(tb, "addpart", device, fmt.Sprint(number), fmt.Sprint(offset/sector), fmt.Sprint(size/sector))
	undo(tb, "delpart", device, fmt.Sprint(number))
	return fmt.Sprintf("%sp%d", device, number)
}

// Mount mounts a device in its own directory, and returns the mount point. It is unmounted at the end of the test.
// Mount retries: an engine that looks at the device claims it for a moment (O_EXCL), and the kernel mounts no claimed
// device.
func Mount(tb testing.TB, device string) string {
	tb.Helper()
	dir := tb.TempDir()
	MountAt(tb, device, dir)
	return dir
}

// MountAt is Mount in an existing directory.
func MountAt(tb testing.TB, device, dir string) {
	tb.Helper()
	NeedRoot(tb)
	if output, err := persist(tb.Context(), "mount", device, dir); err != nil {
		tb.Fatalf("mounting %s: %v\n%s", device, err, output)
	}
	undo(tb, "umount", dir)
}

// Bind bind-mounts a directory or file at another path until the end of the test.
func Bind(tb testing.TB, from, to string) {
	tb.Helper()
	NeedRoot(tb)
	Run(tb, "mount", "--bind", from, to)
	undo(tb, "umount", to)
}
