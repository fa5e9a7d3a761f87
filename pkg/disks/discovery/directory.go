package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/disks/report"
)

func (s selected) lookAtMount(ctx context.Context, v *report.Volume, remember Remember) (err error) {
	m := s.mount
	if m.problem != nil {
		return m.problem
	}
	if v.Identity, err = m.identity(ctx); err != nil {
		return err
	}
	v.Name = NameOf(v.Identity)
	history := remember(v.Name)
	if history.Known(v) {
		return nil
	}
	below, err := m.below()
	if err != nil {
		return err
	}
	if other := remember.taken(below); other != "" {
		history.shares(v, other)
		return nil
	}
	if m.isReadOnly() {
		return m.errReadOnly()
	}
	if m.Root != "/" {
		return fmt.Errorf("only the directory %s of its filesystem is mounted at %s: mount the whole", m.Root, m.Mountpoint)
	}
	if m.elsewhere != "" {
		busy(v, "its filesystem is mounted at %s too", m.elsewhere)
		return nil
	}
	return s.examineMount(ctx, v, history)
}

// examineMount decides by the files in a mounted filesystem whether it can be offered.
func (s selected) examineMount(ctx context.Context, v *report.Volume, history History) error {
	m := s.mount
	dir, err := openMount(m)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // open for reading only
	file, err := anyFile(dir)
	if err != nil {
		return err
	}
	if s.judge(v, history.Wiped.Clean(file, ""), "the file "+file); v.State != report.Available {
		return nil
	}
	err = m.alone(ctx)
	if used, ok := errors.AsType[*InUseError](err); ok {
		busy(v, "%s", used.By)
		return nil
	}
	return err
}

// OpenMount opens the mount point of a volume. It first proves that the filesystem of the identity is mounted there,
// completely, and that no process uses it. The filesystem cannot be unmounted until the file is closed.
func OpenMount(ctx context.Context, at, identity string) (*os.File, error) {
	all, err := mounts()
	if err != nil {
		return nil, err
	}
	for _, m := range all {
		if m.Mountpoint != at {
			continue
		}
		now, err := m.identity(ctx)
		switch {
		case err != nil:
			return nil, err
		case now != identity:
			return nil, fmt.Errorf("another filesystem is mounted at %s: %s instead of %s", at, now, identity)
		case m.Root != "/":
			return nil, fmt.Errorf("only the directory %s of its filesystem is mounted at %s", m.Root, at)
		case m.isReadOnly():
			return nil, m.errReadOnly()
		case m.elsewhere != "":
			return nil, &InUseError{"its filesystem is mounted at " + m.elsewhere + " too"}
		}
		return m.openAlone(ctx)
	}
	return nil, fmt.Errorf("no filesystem is mounted at %s: what is there is not the volume", at)
}

// openAlone opens the root of a mount that no process uses.
func (m *mounted) openAlone(ctx context.Context) (*os.File, error) {
	dir, err := openMount(m)
	if err != nil {
		return nil, err
	}
	if err := m.alone(ctx); err != nil {
		_ = dir.Close() // open for reading only
		return nil, err
	}
	return dir, nil
}

// openMount opens the root of a mount, and checks that it belongs to that mount.
func openMount(m *mounted) (*os.File, error) {
	fd, err := unix.Open(m.Mountpoint, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: m.Mountpoint, Err: err}
	}
	dir := os.NewFile(uintptr(fd), m.Mountpoint)
	var x unix.Statx_t
	err = unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &x)
	if err == nil && int(x.Mnt_id) != m.ID {
		err = errors.New("another filesystem was mounted there meanwhile")
	}
	if err != nil {
		_ = dir.Close() // open for reading only
		return nil, fmt.Errorf("look at the mount point %s: %w", m.Mountpoint, err)
	}
	return dir, nil
}

// lostFound is where fsck puts files whose names are lost. mkfs creates it empty.
const lostFound = "lost+found"

// anyFile returns the name of a file in the root of a filesystem, or "" if the root holds only what mkfs creates.
func anyFile(root *os.File) (string, error) {
	names, err := root.Readdirnames(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	isThere := false
	for _, name := range names {
		if name != lostFound {
			return name, nil
		}
		isThere = true
	}
	if !isThere {
		return "", nil
	}
	return anyLost(root)
}

// anyLost returns the name of a file in lost+found, or lost+found itself if it is no directory of the filesystem.
func anyLost(root *os.File) (string, error) {
	fd, err := unix.Openat2(int(root.Fd()), lostFound, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS,
	})
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EXDEV):
		return lostFound, nil
	case err != nil:
		return "", &os.PathError{Op: "open", Path: filepath.Join(root.Name(), lostFound), Err: err}
	}
	dir := os.NewFile(uintptr(fd), lostFound)
	defer func() { _ = dir.Close() }() // open for reading only
	names, err := dir.Readdirnames(1)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	for _, name := range names {
		return filepath.Join(lostFound, name), nil
	}
	return "", nil
}
