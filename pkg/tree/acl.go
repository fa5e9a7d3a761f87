package tree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrAccess means that a copy cannot have the access control list of its original.
var ErrAccess = errors.New("the copy cannot have the access control list of its original")

const (
	posixLists = "system.posix_acl_" // the access list, and the default list for new entries of a directory
	nfs4List   = "system.nfs4_acl"   // both in one; system.nfs4_dacl and nfs4_sacl are parts of it
)

func isAccessList(name string) bool { return name == nfs4List || strings.HasPrefix(name, posixLists) }

// restrict gives a copy, whose mode is set, the access control lists of its original. With a list, the group bits of
// the mode are only the list's mask: without the list, the group would get rights that only others in the list have. So
// a list is never omitted, and a copy loses a list that it has got from its new parent.
func (m *metadata) restrict(n *node) error {
	if n.kind() == unix.S_IFLNK { // A symlink has no list.
		return nil
	}
	have, err := listXattrs(n.path())
	if err != nil {
		return &os.PathError{Op: "listxattr", Path: n.name, Err: err}
	}
	for _, name := range have {
		if _, wanted := m.xattrs[name]; wanted || !strings.HasPrefix(name, posixLists) {
			continue
		}
		if err := unix.Removexattr(n.path(), name); err != nil && !errors.Is(err, unix.ENODATA) {
			return listError(n, "removexattr "+name, err)
		}
	}
	for name, value := range m.xattrs {
		if !isAccessList(name) {
			continue
		}
		if err := setList(n, name, value); err != nil {
			return listError(n, "setxattr "+name, err)
		}
	}
	return nil
}

// listError distinguishes a permanent refusal from a temporary failure of a server.
func listError(n *node, op string, err error) error {
	if refused(err) {
		return fmt.Errorf("%w: %q: %s: %w", ErrAccess, n.name, op, err)
	}
	return &os.PathError{Op: op, Path: n.name, Err: err}
}

// setList sets a list, unless the copy has it. In NFS 4 every file has one, which usually only expresses the mode. A
// server may also change the list that it gets.
func setList(n *node, name string, value []byte) error {
	if name != nfs4List {
		return unix.Setxattr(n.path(), name, value, 0)
	}
	have, err := readXattr(n.path(), name)
	if err != nil || bytes.Equal(have, value) {
		return err
	}
	if err := unix.Setxattr(n.path(), name, value, 0); err != nil {
		return err
	}
	have, err = readXattr(n.path(), name)
	if err == nil && !bytes.Equal(have, value) {
		err = fmt.Errorf("%w: the server makes another one of it", ErrAccess)
	}
	return err
}
