package memory

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// copyTree copies the contents of one directory to another, with owners, modes and times. Users of the volume may have
// left anything in it and may still change it, so every file is opened through os.Root, which follows no link out of
// the volume.
//
// Sockets, pipes and devices hold no data and are left out, and so are extended attributes.
func copyTree(ctx context.Context, to, from string) error {
	source, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer closeRead(source)
	target, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer closeRead(target)
	return copyEntries(ctx, target, source)
}

// closeRead closes files and roots through which no data was written, so that an error loses none.
func closeRead(c io.Closer) { _ = c.Close() }

func copyEntries(ctx context.Context, to, from *os.Root) error {
	directory, err := from.Open(".")
	if err != nil {
		return err
	}
	defer closeRead(directory)
	entries, err := directory.ReadDir(-1)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := copyEntry(ctx, to, from, entry.Name()); err != nil {
			return err
		}
	}
	return nil
}

func copyEntry(ctx context.Context, to, from *os.Root, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := from.Lstat(name)
	if err != nil {
		return err
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		err = copyDirectory(ctx, to, from, name)
	case fs.ModeSymlink:
		err = copyLink(to, from, name)
	case 0:
		err = copyFile(ctx, to, from, name)
	default:
		return nil
	}
	if err != nil {
		return err
	}
	return copyAttributes(to, name, info)
}

func copyDirectory(ctx context.Context, to, from *os.Root, name string) error {
	if err := to.Mkdir(name, 0o700); err != nil {
		return err
	}
	source, err := from.OpenRoot(name)
	if err != nil {
		return err
	}
	defer closeRead(source)
	target, err := to.OpenRoot(name)
	if err != nil {
		return err
	}
	defer closeRead(target)
	return copyEntries(ctx, target, source)
}

func copyLink(to, from *os.Root, name string) error {
	text, err := from.Readlink(name)
	if err != nil {
		return err
	}
	return to.Symlink(text, name)
}

func copyAttributes(to *os.Root, name string, info fs.FileInfo) error {
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := to.Lchown(name, int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	if info.Mode().Type() == fs.ModeSymlink {
		return nil
	}
	// After the owner, since a change of owner drops the setuid and setgid bits (chown(2)).
	if err := to.Chmod(name, info.Mode()); err != nil {
		return err
	}
	return to.Chtimes(name, time.Time{}, info.ModTime())
}

func copyFile(ctx context.Context, to, from *os.Root, name string) error {
	// Without O_NONBLOCK, a pipe that replaces the file at this moment would block forever.
	source, err := from.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer closeRead(source)
	target, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(copyData(ctx, target, source), target.Close())
}

// chunk is how many bytes are copied between two checks of the context.
const chunk = 64 << 20

// copyData copies a file and keeps its holes (lseek(2), SEEK_DATA).
func copyData(ctx context.Context, to, from *os.File) error {
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if err := to.Truncate(info.Size()); err != nil {
		return err
	}
	for at := int64(0); ; {
		start, err := from.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // Only a hole is left.
		}
		if err != nil {
			return err
		}
		if at, err = copyExtent(to, from, start); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// copyExtent copies the data at an offset, up to the next hole or chunk bytes, and returns its end.
func copyExtent(to, from *os.File, start int64) (int64, error) {
	end, err := from.Seek(start, unix.SEEK_HOLE)
	if err != nil {
		return 0, err
	}
	end = min(end, start+chunk)
	if _, err := from.Seek(start, io.SeekStart); err != nil {
		return 0, err
	}
	if _, err := to.Seek(start, io.SeekStart); err != nil {
		return 0, err
	}
	_, err = io.CopyN(to, from, end-start)
	return end, err
}
