package tree

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// metadata is everything that a node has besides its contents. The attributes of users stay with the node, from which
// they are copied one by one: a file may have hundreds of megabytes of them.
type metadata struct {
	of      *node
	stat    unix.Stat_t
	xattrs  map[string][]byte // those that users cannot set at will
	ofUsers bool              // whether there are others
	lenient bool              // as in Replication
}

// metadataOf reads the metadata of a node, which must stay open until they are applied. Copy calls it for a directory
// before it reads the directory's entries: a mark on the directory that says "all below is done" is then never newer
// than the copied entries. Replicate calls it for directories at the end.
func metadataOf(n *node) (*metadata, error) {
	m := &metadata{of: n, stat: n.stat, xattrs: map[string][]byte{}}
	own := func(name string) bool {
		m.ofUsers = m.ofUsers || isOfUsers(name)
		return !isOfUsers(name)
	}
	return m, m.eachXattr(own, func(name string, value []byte) error { m.xattrs[name] = value; return nil })
}

// eachXattr calls do with those attributes of the original whose names are wanted.
func (m *metadata) eachXattr(wanted func(name string) bool, do func(name string, value []byte) error) error {
	names, err := listXattrs(m.of.path())
	if err != nil {
		return &os.PathError{Op: "listxattr", Path: m.of.name, Err: err}
	}
	for _, name := range names {
		if !wanted(name) {
			continue
		}
		value, err := readXattr(m.of.path(), name)
		if errors.Is(err, unix.ENODATA) { // It was removed meanwhile.
			continue
		}
		if err != nil {
			return &os.PathError{Op: "getxattr " + name, Path: m.of.name, Err: err}
		}
		if err := do(name, value); err != nil {
			return err
		}
	}
	return nil
}

// isOfUsers reports whether an attribute is one that the owner of a file may set to anything.
func isOfUsers(name string) bool { return strings.HasPrefix(name, "user.") }

// apply sets the metadata on another node. The order matters: a change of owner clears the set-user-ID bit and
// security.capability, an access control list changes the mode, and every change updates the times.
func (m *metadata) apply(n *node) error {
	if err := m.own(n); err != nil {
		return err
	}
	if n.kind() != unix.S_IFLNK { // A symbolic link has no mode of its own.
		if err := unix.Fchmodat(unix.AT_FDCWD, n.path(), m.stat.Mode&0o7777, 0); err != nil {
			return &os.PathError{Op: "fchmodat", Path: n.name, Err: err}
		}
	}
	if err := m.describe(n); err != nil {
		return err
	}
	if err := m.restrict(n); err != nil {
		return err
	}
	times := []unix.Timespec{m.stat.Atim, m.stat.Mtim}
	if err := unix.UtimesNanoAt(n.fd, "", times, unix.AT_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "utimensat", Path: n.name, Err: err}
	}
	return nil
}

// describe sets the attributes on another node, except access control lists.
func (m *metadata) describe(n *node) error {
	set := func(name string, value []byte) error {
		if err := unix.Setxattr(n.path(), name, value, 0); err != nil && !m.tolerates(name, err) {
			return &os.PathError{Op: "setxattr " + name, Path: n.name, Err: err}
		}
		return nil
	}
	for name, value := range m.xattrs {
		if isAccessList(name) {
			continue
		}
		if err := set(name, value); err != nil {
			return err
		}
	}
	if !m.ofUsers {
		return nil
	}
	return m.eachXattr(isOfUsers, set)
}

// tolerates reports whether a failure only means that this process, or the filesystem, cannot keep an attribute that is
// a privilege or a label: a copy without it allows no more than its original.
func (m *metadata) tolerates(name string, err error) bool {
	return m.lenient && !isOfUsers(name) && refused(err)
}

// refused reports whether a failure is permanent, and not a temporary one such as an unavailable server.
func refused(err error) bool {
	return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EOPNOTSUPP) ||
		errors.Is(err, unix.EINVAL)
}

// listXattrs returns the names of the attributes that belong to the file rather than to its filesystem.
func listXattrs(path string) ([]string, error) {
	list, err := readSized(func(buffer []byte) (int, error) { return unix.Listxattr(path, buffer) })
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := strings.FieldsFunc(string(list), func(r rune) bool { return r == 0 })
	return slices.DeleteFunc(names, func(name string) bool { return !belongsToFile(name) }), nil
}

// belongsToFile excludes attributes such as btrfs.compression, which another filesystem does not accept, and the raw
// form in which xfs shows access control lists a second time.
func belongsToFile(name string) bool {
	space, _, _ := strings.Cut(name, ".")
	switch space {
	case "user", "security":
		return true
	case "trusted":
		return !strings.HasPrefix(name, "trusted.SGI_ACL_")
	case "system":
		return isAccessList(name)
	}
	return false
}

func readXattr(path, name string) ([]byte, error) {
	return readSized(func(buffer []byte) (int, error) { return unix.Getxattr(path, name, buffer) })
}

// readSized calls read with a buffer that is large enough; the size may change between two calls.
func readSized(read func([]byte) (int, error)) ([]byte, error) {
	for {
		size, err := read(nil)
		if err != nil || size == 0 {
			return nil, err
		}
		buffer := make([]byte, size)
		n, err := read(buffer)
		if errors.Is(err, unix.ERANGE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return buffer[:n], nil
	}
}
