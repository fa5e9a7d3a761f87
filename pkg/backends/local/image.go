package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// allocationStep is how many bytes are allocated between two checks of the context.
const allocationStep = 1 << 30

// checkImage refuses an image that is shorter than its record says: the missing part would read as zeros. Kinds:
// Unavailable.
func checkImage(info os.FileInfo, size int64) error {
	if !info.Mode().IsRegular() {
		return backends.Errorf(backends.Unavailable, "its image is %s and no regular file: restore it from a backup",
			info.Mode())
	}
	if info.Size() < size {
		return backends.Errorf(backends.Unavailable, "its image has %d bytes of %d: data is lost; restore it from a backup",
			info.Size(), size)
	}
	return nil
}

func makeImage(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// growImage gives an image at least the size, durably, with all its blocks if its allocation is full. The image may be
// in use: its contents are not touched. After a failure its size is between the old and the new one.
func growImage(ctx context.Context, path string, size int64, allocation string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = resizeImage(ctx, file, size, allocation)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func resizeImage(ctx context.Context, file *os.File, size int64, allocation string) error {
	if allocation == full {
		return allocateImage(ctx, file, size)
	}
	info, err := file.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	return file.Truncate(size)
}

// allocateImage has the filesystem allocate every block that the image does not have yet (fallocate(2)).
func allocateImage(ctx context.Context, file *os.File, size int64) error {
	for offset := int64(0); offset < size; offset += allocationStep {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := unix.Fallocate(int(file.Fd()), 0, offset, min(allocationStep, size-offset))
		if errors.Is(err, unix.EOPNOTSUPP) {
			return backends.Errorf(backends.Unsupported, "the pool's filesystem cannot set space aside: use allocation=sparse")
		}
		if err != nil {
			return fmt.Errorf("the image's blocks could not be set aside: %w",
				&os.PathError{Op: "fallocate", Path: file.Name(), Err: err})
		}
	}
	return nil
}
