package adversary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/stall"
)

// filler is the prefix of files that fill a filesystem.
const filler = "foreign-"

// disk is a small filesystem that a driver uses.
type disk struct {
	dir, image, kind string
	bytes            int64
	server           *stall.Process // of a served disk; nil for none
}

// makeDisks mounts memory for the images of the setup's filesystems, a small memory filesystem for the driver's state,
// and the setup's filesystems.
func (w *world) makeDisks() error {
	memory := w.path("memory")
	if err := errors.Join(os.Mkdir(memory, 0o755), unix.Mount("adversary", memory, "tmpfs", 0, "size=3g")); err != nil {
		return err
	}
	state := &disk{dir: w.workspace.Data(), kind: "tmpfs", bytes: max(w.setup.StateMiB, 4) << 20}
	if err := unix.Mount("adversary", state.dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=711", state.bytes)); err != nil {
		return err
	}
	for i, kind := range w.setup.Disks {
		d := &disk{dir: w.path(kind.server(), fmt.Sprintf("disk-%d", i)), image: filepath.Join(memory, fmt.Sprint(i)),
			kind: kind.FSType, bytes: kind.MiB << 20}
		w.disks = append(w.disks, d)
		if err := d.make(); err != nil {
			return err
		}
	}
	w.disks = append(w.disks, state) // the last
	return nil
}

func (d *disk) make() error {
	if d.kind == servedKind {
		return d.serve()
	}
	if err := errors.Join(os.MkdirAll(d.dir, 0o755), os.WriteFile(d.image, nil, 0o600),
		os.Truncate(d.image, d.bytes)); err != nil {
		return err
	}
	args := map[string][]string{
		"ext4": {"-q", "-F", "-m", "0", "-O", "^has_journal", d.image}, "xfs": {"-q", d.image},
		"btrfs": {"-q", "--mixed", d.image},
	}[d.kind]
	if err := run("mkfs."+d.kind, args...); err != nil {
		return err
	}
	return d.mount()
}

func (d *disk) mount() error { return run("mount", "-o", "loop", d.image, d.dir) }

// unmount retries while another process uses the filesystem for a moment.
func (d *disk) unmount() (err error) {
	for range 100 {
		if err = unix.Unmount(d.dir, unix.UMOUNT_NOFOLLOW); err == nil {
			return nil
		}
		<-time.After(20 * time.Millisecond)
	}
	return fmt.Errorf("unmount %s: %w", d.dir, err)
}

// fill leaves no block free.
func (d *disk) fill() error {
	file, err := os.Create(filepath.Join(d.dir, filler+"big"))
	if err != nil {
		return err
	}
	for size := int64(64 << 20); size >= 4096; {
		info, err := file.Stat()
		if err != nil {
			return errors.Join(err, file.Close())
		}
		if unix.Fallocate(int(file.Fd()), 0, info.Size(), size) != nil {
			size /= 2
		}
	}
	_ = file.Sync() // the filesystem is full
	return file.Close()
}

// lift undoes changes to the disk that leave it mounted.
func (d *disk) lift() error {
	_ = unix.Mount("", d.dir, "", unix.MS_REMOUNT|unix.MS_BIND, "") // it may be writable
	if err := os.Remove(filepath.Join(d.dir, filler+"big")); err != nil && !errors.Is(err, os.ErrNotExist) &&
		!errors.Is(err, unix.EIO) {
		return err
	}
	return nil
}

// protect makes the disk's mount read-only, which fails while a file on it is open for writing.
func (d *disk) protect() error {
	return unix.Mount("", d.dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
}

// owned returns how many bytes the files on the disk take, except foreign ones.
func (d *disk) owned() (bytes int64) {
	_ = filepath.WalkDir(d.dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.Name() == "lost+found" || strings.HasPrefix(entry.Name(), filler) {
			return nil //nolint:nilerr // it has just gone
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			bytes += s.Blocks * 512
		}
		return nil
	})
	return bytes
}

// shutdown is FS_IOC_SHUTDOWN, _IOR('X', 125, __u32).
const shutdown = 0x8004587d

// flushed makes the filesystem write its journal before (FS_SHUTDOWN_FLAGS_LOGFLUSH).
const flushed = 1

// fail makes every operation on the filesystem fail with EIO, until it is mounted again.
func (d *disk) fail() error {
	dir, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it was only asked
	unix.Sync()
	return unix.IoctlSetPointerInt(int(dir.Fd()), shutdown, flushed)
}

// run runs a tool.
func run(name string, args ...string) error {
	if output, err := exec.CommandContext(context.Background(), name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w: %s", name, args, err, output)
	}
	return nil
}
