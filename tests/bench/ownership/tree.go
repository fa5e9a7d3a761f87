package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// shape is the arrangement of the files in a tree.
type shape string

const (
	wide shape = "wide" // in directories of a thousand
	flat shape = "flat" // in a single directory
)

// perDirectory is the number of files in a directory of a wide tree.
const perDirectory = 1000

// directories returns the number of directories below a tree's root.
func (s shape) directories(files int) int {
	if s == flat {
		return 1
	}
	return max(1, files/perDirectory)
}

// plant creates a tree of empty files that belong to root.
func plant(ctx context.Context, root string, s shape, files int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	directories := s.directories(files)
	for d := range directories {
		group.Go(func() error { return plantDirectory(ctx, root, d, directories, files) })
	}
	return group.Wait()
}

func plantDirectory(ctx context.Context, root string, d, directories, files int) error {
	dir := filepath.Join(root, fmt.Sprintf("directory-%04d", d))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	fd, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("open", err)
	}
	defer func() { _ = unix.Close(fd) }() // a directory has no data to write back
	for f := d; f < files; f += directories {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := plantEntry(fd, f); err != nil {
			return fmt.Errorf("%s, entry %d: %w", dir, f, err)
		}
	}
	return nil
}

// plantEntry creates one entry. Most are like those of a program that does not use groups. There are also programs,
// private files, symlinks, hard links to the previous entry, setuid programs and directories.
func plantEntry(dir, number int) error {
	name := fmt.Sprintf("file-%07d", number)
	switch kind := number / 7 % 1000; {
	case kind < 20:
		return unix.Symlinkat("nowhere", dir, name)
	case kind < 22:
		return unix.Mkdirat(dir, name, 0o755)
	case kind < 24:
		return plantTwice(dir, name)
	case kind < 25:
		return plantFile(dir, name, 0o4755)
	case kind < 100:
		return plantFile(dir, name, 0o755)
	case kind < 200:
		return plantFile(dir, name, 0o600)
	default:
		return plantFile(dir, name, 0o644)
	}
}

func plantTwice(dir int, name string) error {
	if err := plantFile(dir, name, 0o640); err != nil {
		return err
	}
	return unix.Linkat(dir, name, dir, name+"-again", 0)
}

func plantFile(dir int, name string, mode uint32) error {
	fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, mode&0o777)
	if err != nil {
		return os.NewSyscallError("openat", err)
	}
	if mode&0o777 != mode {
		err = unix.Fchmod(fd, mode)
	}
	if e := unix.Close(fd); err == nil {
		err = e
	}
	return err
}
