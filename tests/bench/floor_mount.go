package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// measureBinds alternates between both ways to create a bind mount. A lifecycle's floor uses the faster one.
func (f *floor) measureBinds(ctx context.Context) error {
	from, to := filepath.Join(f.dir, "from"), filepath.Join(f.dir, "to")
	for _, dir := range []string{from, to} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	return repeat(ctx, bindRounds, func(int) error {
		if err := f.bindMount.time(func() error { return mounted(to, bindByMount(from, to)) }); err != nil {
			return err
		}
		return f.bindTree.time(func() error { return mounted(to, bindByTree(from, to)) })
	})
}

// binds returns the faster way to create a bind mount, and the slower one.
func (f *floor) binds() (fast, slow *series) {
	if f.bindTree.median() < f.bindMount.median() {
		return &f.bindTree, &f.bindMount
	}
	return &f.bindMount, &f.bindTree
}

// mounted unmounts the path if err is nil.
func mounted(path string, err error) error {
	if err != nil {
		return err
	}
	return os.NewSyscallError("umount2", unix.Unmount(path, unix.UMOUNT_NOFOLLOW))
}

func bindByMount(from, to string) error {
	return os.NewSyscallError("mount", unix.Mount(from, to, "", unix.MS_BIND, ""))
}

// bindByTree needs Linux 5.2 (open_tree(2), move_mount(2)).
func bindByTree(from, to string) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("open_tree", err)
	}
	err = unix.MoveMount(tree, "", unix.AT_FDCWD, to, unix.MOVE_MOUNT_F_EMPTY_PATH)
	return errors.Join(os.NewSyscallError("move_mount", err), os.NewSyscallError("close", unix.Close(tree)))
}
