package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
)

// The permissions that the kubelet adds (kubernetes pkg/volume/volume_linux.go).
const (
	kubeletFile      fs.FileMode = 0o660
	kubeletDirectory             = kubeletFile | 0o110 | fs.ModeSetgid
)

// kubelet does the same as the kubelet for a pod's fsGroup, according to its documentation and source: one path after
// the other is examined, given to the group, and given its permissions, even if it already has them. A directory
// follows its entries. The names of a directory are read at once and are not sorted. As in the kubelet, an entry that
// cannot be changed is skipped.
func kubelet(ctx context.Context, root string, gid uint32) error {
	info, err := os.Lstat(root)
	if err != nil {
		return err
	}
	return kubeletVisit(ctx, root, info, int(gid))
}

func kubeletVisit(ctx context.Context, path string, info fs.FileInfo, gid int) error {
	if info.IsDir() {
		if err := kubeletDescend(ctx, path, gid); err != nil {
			return err
		}
	}
	kubeletChange(path, info, gid)
	return nil
}

func kubeletDescend(ctx context.Context, dir string, gid int) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // the kubelet would continue; the benchmark must end on request
	}
	names, err := kubeletNames(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if err := kubeletVisit(ctx, path, info, gid); err != nil {
			return err
		}
	}
	return nil
}

func kubeletNames(dir string) ([]string, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // a directory has no data to write back
	return file.Readdirnames(-1)
}

// kubeletChange ignores errors, which the kubelet only logs. The comparison of the results shows them.
func kubeletChange(path string, info fs.FileInfo, gid int) {
	_ = os.Lchown(path, -1, gid)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
	case info.IsDir():
		_ = os.Chmod(path, info.Mode()|kubeletDirectory)
	default:
		_ = os.Chmod(path, info.Mode()|kubeletFile)
	}
}
