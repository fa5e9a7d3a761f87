package tree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrAccess says that a copy could not be given the access control list of its original.
var ErrAccess = errors.New("the copy cannot have the access control list of its original")

const (
	posixLists = "system.posix_acl_" // the access list, and the one that what is made in a directory gets
	nfs4List   = "system.nfs4_acl"   // both in one; system.nfs4_dacl and nfs4_sacl are parts of it
)

func isAccessList(name string) bool { return name == nfs4List || strings.HasPrefix(name, posixLists) }

// restrict gives a copy, whose mode is set, the access control lists of its original. With a list the group's bits of a
// mode are no more than the list's mask: without it the group would have what only others in the list were given. So a
// list is never left out, and a copy that its new parent has given one loses it.
func (m *metadata) restrict(n *node) error {
	if n.kind() == unix.S_IFLNK { // It has no list.
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

// listError tells what can never be from what a server does not do now.
func listError(n *node, op string, err error) error {
	if refused(err) {
		return fmt.Errorf("%w: %q: %s: %w", ErrAccess, n.name, op, err)
	}
	return &os.PathError{Op: op, Path: n.name, Err: err}
}

// setList sets a list, unless the copy has it. By NFS 4 every file has one, and mostly it only says what the mode does;
// and a server may make another one of what it is given.
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
