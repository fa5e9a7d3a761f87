package filecopy

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// chunk is how many bytes are copied between two checks of the context.
	chunk = 16 << 20
	// bufferSize is how many bytes pass through memory at a time if the kernel cannot copy by itself.
	bufferSize = 1 << 20
)

// Blocks says whether the copy may share blocks.
type Blocks int

const (
	// Shared lets both files use the same blocks until one of them is written.
	Shared Blocks = iota
	// Own gives the copy blocks of its own, so that a write to it does not run out of space.
	Own
)

// Duplicate makes dst, an empty file, hold the first size bytes of src. The data is not yet on disk when it returns. A
// clone is of one instant. A copy is not, so the caller must make sure that src does not change. After a failure,
// including that of the context, the contents of dst are undefined.
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

// NotSupported reports whether the filesystem does not support the operation at all, or not for this pair of files.
func NotSupported(err error) bool {
	for _, errno := range []unix.Errno{unix.EOPNOTSUPP, unix.ENOTTY, unix.EXDEV, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// Copy makes dst, an empty file, hold the first size bytes of src. Holes of src become holes of dst.
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

// nextData finds the first range at or after offset that is not a hole (lseek(2), SEEK_DATA, SEEK_HOLE). If there is
// none, start is size. A filesystem that does not support holes reports everything as data.
func nextData(src *os.File, offset, size int64) (start, end int64, err error) {
	start, err = unix.Seek(int(src.Fd()), offset, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, size, nil
	}
	if err != nil {
		return 0, 0, &os.PathError{Op: "lseek", Path: src.Name(), Err: err}
	}
	end, err = unix.Seek(int(src.Fd()), start, unix.SEEK_HOLE)
	if errors.Is(err, unix.ENXIO) { // The file was truncated in between.
		return size, size, nil
	}
	if err != nil {
		return 0, 0, &os.PathError{Op: "lseek", Path: src.Name(), Err: err}
	}
	return start, min(end, size), nil
}

// copyRange copies the bytes from start to end in chunks.
func copyRange(ctx context.Context, dst, src *os.File, start, end int64, blocks Blocks) error {
	inKernel := blocks == Shared // The kernel's copy may share blocks; ours never does.
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
		if n == 0 { // The file was truncated; the rest reads as zeros.
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

// onlyWriter hides ReadFrom, so that io.CopyBuffer uses the buffer.
type onlyWriter struct{ io.Writer }

// startWriting starts writing the copied bytes to disk (sync_file_range(2)), so that the final fsync, which no context
// can interrupt, has little left to do. That fsync also reports an error of this call.
func startWriting(dst *os.File, offset, length int64) {
	_ = unix.SyncFileRange(int(dst.Fd()), offset, length, unix.SYNC_FILE_RANGE_WRITE)
}
