package filecopy

import (
	"errors"
	"os"
)

// CanClone reports whether files in the directory can share blocks, by trying with two files that have no
// name any more and are gone when it returns.
func CanClone(dir string) (bool, error) {
	src, err := unnamed(dir)
	if err != nil {
		return false, err
	}
	defer closeQuietly(src)
	dst, err := unnamed(dir)
	if err != nil {
		return false, err
	}
	defer closeQuietly(dst)
	if _, err := src.Write(make([]byte, 4096)); err != nil {
		return false, err
	}
	err = Clone(dst, src)
	if err != nil && NotSupported(err) {
		return false, nil
	}
	return err == nil, err
}

// unnamed opens a temporary file that is gone when it is closed.
func unnamed(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// closeQuietly closes a file whose data nobody needs, so that nobody needs to know of a failure either.
func closeQuietly(file *os.File) { _ = file.Close() }
