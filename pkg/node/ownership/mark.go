package ownership

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// markName is the extended attribute on a volume's root. Only processes with CAP_SYS_ADMIN see its class, so a user of
// the volume can neither read nor forge it.
const markName = "trusted.stowage.fsgroup"

// progress is how far a walk has come.
type progress string

const (
	begun    progress = "begun"
	complete progress = "complete"
)

// mark says how far the last walk got, and for which group.
type mark struct {
	progress progress
	gid      uint32
}

// readMark returns the root's mark; the zero mark if there is none, or none is possible. An unreadable mark is not that
// of a completed walk.
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

// writeMark puts the mark on the root. If no mark is possible, only the root, which comes last, distinguishes a
// completed walk from one that was cut short.
func writeMark(root *os.File, m mark) error {
	err := unix.Fsetxattr(int(root.Fd()), markName, fmt.Appendf(nil, "%s %d", m.progress, m.gid), 0)
	if impossible(err) {
		return nil
	}
	return os.NewSyscallError("fsetxattr", err)
}

// impossible reports whether the filesystem does not support such attributes, has no room for one, or denies them to
// this process.
func impossible(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) ||
		errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
