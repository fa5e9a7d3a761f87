package scrub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/disks/wipe"
	"github.com/stowage-csi/stowage/pkg/tree"
)

const (
	trash     = ".stowage-scrub"
	lostFound = "lost+found" // mkfs creates it, and e2fsck needs it
)

// directory empties the filesystem whose root is open, except the lost+found that mkfs created.
func directory(ctx context.Context, root *os.File) error {
	if err := tree.MakeWritable(root); err != nil {
		return err
	}
	kept, err := openLostFound(root)
	if err != nil {
		return err
	}
	if kept != nil {
		defer kept.Close() //nolint:errcheck // It was only read.
		if err := wipe.Tree(ctx, kept); err != nil {
			return err
		}
	}
	bin, err := openTrash(root)
	if err != nil {
		return err
	}
	defer bin.Close() //nolint:errcheck // It was only read.
	if err := throw(ctx, root, bin, kept != nil); err != nil {
		return err
	}
	if err := wipe.Tree(ctx, bin); err != nil {
		return err
	}
	if err := unix.Unlinkat(int(root.Fd()), trash, unix.AT_REMOVEDIR); err != nil {
		return fmt.Errorf("removing the trash directory %s: %w", trash, err)
	}
	return finish(ctx, root, kept)
}

// finish removes the attributes of the root itself, and checks that everything is gone.
func finish(ctx context.Context, root, kept *os.File) error {
	if kept == nil {
		if err := wipe.Tree(ctx, root); err != nil {
			return err
		}
	} else if err := wipe.Attributes(root); err != nil {
		return err
	}
	if err := unix.Syncfs(int(root.Fd())); err != nil {
		return fmt.Errorf("writing the filesystem at %s: %w", root.Name(), err)
	}
	left, err := names(root, stays(kept != nil)...)
	if err == nil && len(left) == 0 && kept != nil {
		left, err = names(kept)
	}
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("the volume holds %q after all was removed: somebody still writes to it; stop the writer first",
			left[0])
	}
	return err
}

// openLostFound opens the filesystem's lost+found if it is a directory that only root may use. Anything else of that
// name is data.
func openLostFound(root *os.File) (*os.File, error) {
	dir, err := openInside(root, lostFound)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, nil // There is none to keep.
	case err != nil:
		return nil, fmt.Errorf("opening %s: %w", lostFound, err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("looking at %s: %w", lostFound, err)
	}
	if stat.Uid != 0 || stat.Gid != 0 || stat.Mode&0o7777 != 0o700 {
		_ = dir.Close()
		return nil, nil // It belongs to a user.
	}
	return dir, nil
}

// openTrash creates the trash directory, or opens the one that an earlier scrub left. It does not use an empty one: in
// a snapshot, that may stand for a subvolume, and can hold nothing.
func openTrash(root *os.File) (*os.File, error) {
	_ = unix.Unlinkat(int(root.Fd()), trash, unix.AT_REMOVEDIR) // Usually there is none.
	for range 2 {
		err := unix.Mkdirat(int(root.Fd()), trash, 0o700)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, fmt.Errorf("making the trash directory %s: %w", trash, err)
		}
		dir, err := openInside(root, trash)
		if err == nil {
			return writable(dir)
		}
		if !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
			return nil, fmt.Errorf("opening the trash directory %s: %w", trash, err)
		}
		if err := unix.Unlinkat(int(root.Fd()), trash, 0); err != nil { // A tenant's file or link of that name.
			return nil, fmt.Errorf("removing %s, which is no directory: %w", trash, err)
		}
	}
	return nil, fmt.Errorf("%s is made again and again: somebody still writes to the volume; stop the writer first", trash)
}

// writable makes an open directory writable if it is a read-only subvolume, and closes it if that fails.
func writable(dir *os.File) (*os.File, error) {
	if err := tree.MakeWritable(dir); err != nil {
		_ = dir.Close()
		return nil, err
	}
	return dir, nil
}

// openInside opens a directory of the same filesystem without following links.
func openInside(parent *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat2(int(parent.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// throw renames everything in the root into the trash, to numbers. It skips numbers that an earlier scrub left. It
// repeats until the root is empty.
func throw(ctx context.Context, root, bin *os.File, keep bool) error {
	number := 0
	for range 1000 { // A writer that never stops must not hold the scrub for ever.
		left, err := names(root, append(stays(keep), trash)...)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			return nil
		}
		for _, name := range left {
			if err := throwOne(ctx, root, bin, name, &number); err != nil {
				return err
			}
		}
	}
	return errors.New("new files come as fast as the old ones go: somebody still writes to the volume; stop the writer " +
		"first")
}

// throwOne moves an entry of the root into the trash, or removes it if the filesystem does not move it.
func throwOne(ctx context.Context, root, bin *os.File, name string, number *int) error {
	for {
		*number++
		target := fmt.Sprint(*number)
		var stat unix.Stat_t
		if err := unix.Fstatat(int(bin.Fd()), target, &stat, unix.AT_SYMLINK_NOFOLLOW); err == nil {
			continue // From an earlier scrub. Only scrubs write here, so the check is no race; NFS has no RENAME_NOREPLACE.
		}
		err := unix.Renameat(int(root.Fd()), name, int(bin.Fd()), target)
		if errors.Is(err, unix.EROFS) {
			if failed := unfreeze(root, name); failed != nil {
				return fmt.Errorf("moving %q into the trash: %w; making it writable first: %w", name, err, failed)
			}
			err = unix.Renameat(int(root.Fd()), name, int(bin.Fd()), target)
		}
		if errors.Is(err, unix.EXDEV) { // A tenant made the trash a subvolume, or gave the entry to another project.
			return tree.RemoveIn(ctx, root, name)
		}
		if err == nil || errors.Is(err, unix.ENOENT) || unix.Unlinkat(int(root.Fd()), name, unix.AT_REMOVEDIR) == nil {
			return nil // The last one was empty. In a snapshot, it may stand for a subvolume, and cannot be moved.
		}
		return fmt.Errorf("moving %q into the trash: %w", name, err)
	}
}

// unfreeze makes an entry of the root writable that is a read-only subvolume. A btrfs does not move it before.
func unfreeze(root *os.File, name string) error {
	dir, err := openInside(root, name)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // It was only read.
	return tree.MakeWritable(dir)
}

func stays(keep bool) []string {
	if keep {
		return []string{lostFound}
	}
	return nil
}

// names reads names in a directory: some if there are any besides the exceptions.
func names(dir *os.File, except ...string) (left []string, err error) {
	const batch = 4096
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	for len(left) == 0 { // A batch may hold only exceptions.
		all, err := dir.Readdirnames(batch)
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, name := range all {
			if !slices.Contains(except, name) {
				left = append(left, name)
			}
		}
	}
	return left, nil
}
