package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// tabulate writes type, permissions and owners of all entries, in the order of their names.
func tabulate(ctx context.Context, root string, out io.Writer) error {
	lines := bufio.NewWriterSize(out, 1<<20)
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var stat unix.Stat_t
		if err := unix.Lstat(path, &stat); err != nil {
			return os.NewSyscallError("lstat", err)
		}
		_, err = fmt.Fprintf(lines, "%s %o %d:%d\n", path[len(root):], stat.Mode, stat.Uid, stat.Gid)
		return err
	})
	return errors.Join(err, lines.Flush())
}

// compare returns an error if the mounted files differ from the kubelet's result. The first result, which is the
// kubelet's, is only recorded.
func (b *bench) compare(ctx context.Context) error {
	if _, err := os.Stat(b.table); errors.Is(err, os.ErrNotExist) {
		return writeTable(ctx, b.space.root(), b.table)
	}
	mine := b.table + ".new"
	if err := writeTable(ctx, b.space.root(), mine); err != nil {
		return err
	}
	return errors.Join(sameLines(mine, b.table), os.Remove(mine))
}

func writeTable(ctx context.Context, root, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(tabulate(ctx, root, file), file.Close())
}

// sameLines returns an error with the first line that differs.
func sameLines(path, want string) error {
	got, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = got.Close() }() // it was read only
	wanted, err := os.Open(want)
	if err != nil {
		return err
	}
	defer func() { _ = wanted.Close() }() // it was read only
	g, w := bufio.NewScanner(got), bufio.NewScanner(wanted)
	for {
		more, due := g.Scan(), w.Scan()
		switch {
		case more != due || g.Text() != w.Text():
			return fmt.Errorf("the outcome differs from the kubelet's: %q, want %q", g.Text(), w.Text())
		case !more:
			return errors.Join(g.Err(), w.Err())
		}
	}
}
