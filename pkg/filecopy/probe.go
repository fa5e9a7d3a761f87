package filecopy

import (
	"errors"
	"os"
)

// CanClone reports whether files in the directory can share blocks. It tries with two unlinked files, which are gone
// when it returns.
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

// closeQuietly closes a file whose data is not needed, so that an error does not matter.
func closeQuietly(file *os.File) { _ = file.Close() }
