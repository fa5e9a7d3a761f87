package rawfile

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Open is os.OpenFile for files that are not polled. Its errors are of type *os.PathError.
func Open(path string, flags int, mode uint32) (*os.File, error) {
	for {
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC, mode)
		if err == nil {
			return os.NewFile(uintptr(fd), path), nil
		}
		if !errors.Is(err, unix.EINTR) { // from a network filesystem
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// Read is os.ReadFile for files that are not polled.
func Read(path string) ([]byte, error) {
	file, err := Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	return io.ReadAll(file)
}
