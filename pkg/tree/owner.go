package tree

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrOwner means that a copy cannot have the owner of its original.
var ErrOwner = errors.New("the copy cannot have the owner of its original")

// own sets the owner of a copy, and verifies it: a server may refuse the change, or set another owner.
func (m *metadata) own(n *node) error {
	if n.stat.Uid == m.stat.Uid && n.stat.Gid == m.stat.Gid {
		return nil
	}
	var now unix.Stat_t
	err := unix.Fchownat(n.fd, "", int(m.stat.Uid), int(m.stat.Gid), unix.AT_EMPTY_PATH)
	if refused(err) {
		return fmt.Errorf("%w: %q belongs to %d:%d: %w", ErrOwner, n.name, m.stat.Uid, m.stat.Gid, err)
	}
	if err == nil {
		err = unix.Fstat(n.fd, &now)
	}
	if err != nil {
		return &os.PathError{Op: "fchownat", Path: n.name, Err: err}
	}
	if now.Uid != m.stat.Uid || now.Gid != m.stat.Gid {
		return fmt.Errorf("%w: %q belongs to %d:%d, and its copy to %d:%d", ErrOwner, n.name, m.stat.Uid, m.stat.Gid, now.Uid,
			now.Gid)
	}
	return nil
}
