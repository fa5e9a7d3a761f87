package safepath

import (
	"errors"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// OpenBeneath opens the directory at a relative path below an open one. It follows no symlink and enters no other
// filesystem, so it opens exactly the directory that the path names, or fails.
//
// Kinds: Invalid for a path that Relative refuses, and for one that leads over a symlink, a file or a mount; NotFound
// when there is no such directory.
func OpenBeneath(root *os.File, rel string) (*os.File, error) {
	return openBeneath(root, rel, unix.O_DIRECTORY)
}

// FindBeneath is OpenBeneath with O_PATH. The directory need not be readable.
func FindBeneath(root *os.File, rel string) (*os.File, error) {
	return openBeneath(root, rel, unix.O_PATH|unix.O_DIRECTORY)
}

// FindAcross is FindBeneath, but enters filesystems that are mounted below the root. The kernel's NFS client mounts
// them by itself if a server exports another of its filesystems there. It follows no symlink either.
func FindAcross(root *os.File, rel string) (*os.File, error) {
	return openBelow(root, rel, unix.O_PATH|unix.O_DIRECTORY, 0)
}

// OpenFileBeneath is OpenBeneath for reading a file. The directories on the way need not be readable.
func OpenFileBeneath(root *os.File, rel string) (*os.File, error) {
	return openBeneath(root, rel, unix.O_NONBLOCK|unix.O_NOCTTY)
}

func openBeneath(root *os.File, rel string, flags uint64) (*os.File, error) {
	return openBelow(root, rel, flags, unix.RESOLVE_NO_XDEV)
}

func openBelow(root *os.File, rel string, flags, resolve uint64) (*os.File, error) {
	if err := Relative(rel); err != nil && rel != "." {
		return nil, err
	}
	fd, err := openat2(int(root.Fd()), rel, unix.O_RDONLY|flags, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS|resolve)
	switch {
	case errors.Is(err, unix.EXDEV):
		return nil, failure.Errorf(failure.Invalid, "%q leads to another filesystem: it is not followed: %w", rel, err)
	case errors.Is(err, unix.ELOOP):
		return nil, failure.Errorf(failure.Invalid, "%q leads over a symlink: it is not followed: %w", rel, err)
	case err != nil:
		return nil, failure.Errorf(kindOf(err), "opening %q: %w", rel, err)
	}
	return os.NewFile(uintptr(fd), rel), nil
}

// Relative checks an external path that must stay below some directory. The path must be in its plain form: relative,
// no ".", no "..", no doubled or closing slash and no NUL byte. Kinds: Invalid.
func Relative(s string) error {
	for element := range strings.SplitSeq(s, "/") {
		if err := Name(element); err != nil {
			return failure.Errorf(failure.Invalid, "path %.64q is not a plain relative path: %w", s, err)
		}
	}
	if len(s) > maxPath || path.Clean(s) != s {
		return failure.Errorf(failure.Invalid, "path %.64q... is %d bytes long: at most %d are allowed", s, len(s), maxPath)
	}
	return nil
}
