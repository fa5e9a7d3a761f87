package filecopy

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// chunk is how many bytes are copied between two looks at the context.
	chunk = 16 << 20
	// bufferSize is how many bytes pass through memory at a time, where the kernel cannot copy by itself.
	bufferSize = 1 << 20
)

// Blocks says whose blocks the copy may use.
type Blocks int

const (
	// Shared lets both files use the same blocks until one of them is written.
	Shared Blocks = iota
	// Own gives the copy blocks of its own, so that it does not run out of space when it is written.
	Own
)

// Duplicate makes dst, an empty file, hold the first size bytes of src. The data is not yet on disk when it
// returns. A clone is of one instant; a copy is not, so that the caller sees to it that src is at rest.
// After a failure, which may be that of the context, dst holds anything.
func Duplicate(ctx context.Context, dst, src *os.File, size int64, blocks Blocks) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if blocks == Shared {
		if err := Clone(dst, src); err == nil {
			return dst.Truncate(size)
		} else if !NotSupported(err) {
			return err
		}
	}
	return Copy(ctx, dst, src, size, blocks)
}

// Clone makes dst share all of src's blocks (ioctl_ficlone(2)).
func Clone(dst, src *os.File) error {
	if err := unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())); err != nil {
		return &os.LinkError{Op: "ficlone", Old: src.Name(), New: dst.Name(), Err: err}
	}
	return nil
}

// NotSupported reports whether the filesystem, or this pair of files, cannot do what was asked at all.
func NotSupported(err error) bool {
	for _, errno := range []unix.Errno{unix.EOPNOTSUPP, unix.ENOTTY, unix.EXDEV, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// Copy makes dst, an empty file, hold the first size bytes of src. Holes of src are holes of dst.
func Copy(ctx context.Context, dst, src *os.File, size int64, blocks Blocks) error {
	for offset := int64(0); offset < size; {
		start, end, err := nextData(src, offset, size)
		if err != nil {
			return err
		}
		if start >= size {
			break
		}
		if err := copyRange(ctx, dst, src, start, end, blocks); err != nil {
			return err
		}
		offset = end
	}
	return dst.Truncate(size)
}

// nextData finds the first range at or after offset that is not a hole (lseek(2), SEEK_DATA, SEEK_HOLE).
// Where there is none, start is size. A filesystem that does not know holes says that all is data.
func nextData(src *os.File, offset, size int64) (start, end int64, err error) {
	start, err = unix.Seek(int(src.Fd()), offset, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, size, nil
	}
	if err != nil {
		return 0, 0, &os.PathError{Op: "lseek", Path: src.Name(), Err: err}
	}
	end, err = unix.Seek(int(src.Fd()), start, unix.SEEK_HOLE)
	if errors.Is(err, unix.ENXIO) { // The file was cut short in between.
		return size, size, nil
	}
	if err != nil {
		return 0, 0, &os.PathError{Op: "lseek", Path: src.Name(), Err: err}
	}
	return start, min(end, size), nil
}

// copyRange copies the bytes from start to end in chunks.
func copyRange(ctx context.Context, dst, src *os.File, start, end int64, blocks Blocks) error {
	inKernel := blocks == Shared // The kernel's copy may share blocks; only our own never does.
	for start < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		length := min(end-start, chunk)
		n, err := copyChunk(dst, src, start, length, inKernel)
		if err != nil && inKernel && NotSupported(err) {
			inKernel = false
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 { // The file was cut short; the rest reads as zeros.
			return nil
		}
		startWriting(dst, start, n)
		start += n
	}
	return nil
}

func copyChunk(dst, src *os.File, offset, length int64, inKernel bool) (int64, error) {
	if !inKernel {
		return copyThroughMemory(dst, src, offset, length)
	}
	from, to := offset, offset
	n, err := unix.CopyFileRange(int(src.Fd()), &from, int(dst.Fd()), &to, int(length), 0)
	if err != nil {
		return 0, &os.LinkError{Op: "copy_file_range", Old: src.Name(), New: dst.Name(), Err: err}
	}
	return int64(n), nil
}

func copyThroughMemory(dst, src *os.File, offset, length int64) (int64, error) {
	buffer := make([]byte, min(length, bufferSize))
	reader := io.NewSectionReader(src, offset, length)
	return io.CopyBuffer(onlyWriter{io.NewOffsetWriter(dst, offset)}, reader, buffer)
}

// onlyWriter hides ReadFrom, so that the buffer is used.
type onlyWriter struct{ io.Writer }

// startWriting sends what was just copied towards the disk (sync_file_range(2)), so that the final fsync,
// which no context can cut short, finds little to do. Its failure shows in that fsync too.
func startWriting(dst *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(dst.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}
