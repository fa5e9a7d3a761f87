package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// unpack unpacks all packages of a folder into the root.
func unpack(ctx context.Context, debs, root string) error {
	if err := merge(root); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for _, file := range files {
		group.Go(func() error { return unpackOne(ctx, file, root) })
	}
	return group.Wait()
}

// merge creates the links of a merged /usr while these folders are empty.
func merge(root string) error {
	var problems []error
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		problems = append(problems, os.MkdirAll(filepath.Join(root, "usr", name), 0o755),
			os.Symlink("usr/"+name, filepath.Join(root, name)))
	}
	return errors.Join(problems...)
}

// unpackOne unpacks dpkg-deb's output with tar: dpkg-deb's own -x does not keep the links.
func unpackOne(ctx context.Context, file, root string) error {
	from := command(ctx, "/", "dpkg-deb", "--fsys-tarfile", file)
	to := command(ctx, "/", "tar", "-x", "-C", root, "--keep-directory-symlink",
		"--exclude=./usr/share/doc", "--exclude=./usr/share/man", "--exclude=./usr/share/locale",
		"--exclude=./usr/share/info")
	pipe, err := from.StdoutPipe()
	if err != nil {
		return err
	}
	to.Stdin = pipe
	if err := from.Start(); err != nil {
		return err
	}
	_, err = to.Output()
	if err := errors.Join(explain(err), explain(from.Wait())); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(file), err)
	}
	return nil
}
