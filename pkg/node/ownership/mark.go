package ownership

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// markName is the extended attribute on a volume's root. Its class is visible to processes with
// CAP_SYS_ADMIN only, so that a volume's user neither sees nor forges it.
const markName = "trusted.stowage.fsgroup"

// progress is how far a walk has come.
type progress string

const (
	begun    progress = "begun"
	complete progress = "complete"
)

// mark says how far the last walk came, and for which group.
type mark struct {
	progress progress
	gid      uint32
}

// readMark returns the root's mark; the zero mark where there is none, or can be none. One that cannot be
// understood is not that of a completed walk.
func readMark(root *os.File) (mark, error) {
	value := make([]byte, 64)
	n, err := unix.Fgetxattr(int(root.Fd()), markName, value)
	switch {
	case errors.Is(err, unix.ENODATA) || impossible(err):
		return mark{}, nil
	case errors.Is(err, unix.ERANGE):
		return mark{progress: begun}, nil
	case err != nil:
		return mark{}, os.NewSyscallError("fgetxattr", err)
	}
	var found mark
	if fields, _ := fmt.Sscanf(string(value[:n]), "%s %d", &found.progress, &found.gid); fields != 2 {
		return mark{progress: begun}, nil
	}
	return found, nil
}

// writeMark puts the mark on the root. Where there can be none, nothing tells a walk that was cut short
// from one never made but the root, which comes last.
func writeMark(root *os.File, m mark) error {
	err := unix.Fsetxattr(int(root.Fd()), markName, fmt.Appendf(nil, "%s %d", m.progress, m.gid), 0)
	if impossible(err) {
		return nil
	}
	return os.NewSyscallError("fsetxattr", err)
}

// impossible reports whether the filesystem has no such attributes, has no room for one, or does not let
// this process have them.
func impossible(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) ||
		errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
