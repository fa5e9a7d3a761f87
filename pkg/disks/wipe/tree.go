package wipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/tree"
)

// Tree removes everything in an open directory, and the directory's own extended attributes of users. It follows no
// link. A mount inside the directory is not entered, and is an error. The directory stays. If it is the root of a
// read-only btrfs subvolume, it becomes writable.
func Tree(ctx context.Context, dir *os.File) error {
	if err := tree.MakeWritable(dir); err != nil {
		return err
	}
	if err := removeEntries(ctx, dir); err != nil {
		return fmt.Errorf("removing what is in %s: %w", dir.Name(), err)
	}
	if err := Attributes(dir); err != nil {
		return err
	}
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return fmt.Errorf("writing the filesystem at %s: %w", dir.Name(), err)
	}
	return nil
}

// removeEntries reads names until there are none: removing entries while reading may hide others.
func removeEntries(ctx context.Context, dir *os.File) error {
	const batch = 256
	for {
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := dir.Readdirnames(batch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := tree.RemoveIn(ctx, dir, name); err != nil {
				return err
			}
		}
	}
}

// Attributes removes the extended attributes of users from an open directory itself.
func Attributes(dir *os.File) error {
	if err := removeAttributes(dir); err != nil {
		return fmt.Errorf("removing the extended attributes of %s: %w", dir.Name(), err)
	}
	return nil
}

func removeAttributes(dir *os.File) error {
	buffer := make([]byte, 64<<10) // XATTR_LIST_MAX
	length, err := unix.Flistxattr(int(dir.Fd()), buffer)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(string(buffer[:length]), "\x00") {
		if !strings.HasPrefix(name, "user.") {
			continue
		}
		if err := unix.Fremovexattr(int(dir.Fd()), name); err != nil && !errors.Is(err, unix.ENODATA) {
			return err
		}
	}
	return nil
}
