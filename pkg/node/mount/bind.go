package mount

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// Bind makes the directory, file or device node at source appear at the target too, without the mounts below it. It
// returns the state of the target afterwards, except ReadOnly. With readOnly the bind mount is read-only from the first
// instant. The mount flags of the source's own mount (nodev, noexec ...) carry over, and the options change them.
// Options that only a filesystem can have are ignored.
//
// A read-only bind mount of a block device node does not prevent opening the device for writing: the kernel checks
// read-only mounts for files and directories only. The container's device rules prevent it.
//
// prove, unless nil, gets the state of what will be mounted, except ReadOnly: the source may have changed since the
// caller looked at it. If prove fails, nothing appears at the target.
//
// Kinds: NotFound when the source or the target is not there; Invalid when either is a symlink or one of them is a
// directory and the other is not; Exists when something is mounted at the target already: bind mounts are never
// stacked; those of prove.
func Bind(source string, target *safepath.Target, readOnly bool, prove func(State) error,
	options ...string) (State, error) {
	tree, err := cloneTree(source)
	if err != nil {
		return State{}, err
	}
	defer closeFd(tree)
	if prove != nil {
		if err := proven(tree, source, prove); err != nil {
			return State{}, err
		}
	}
	asked := attributesOf(options)
	if err := asked.apply(tree, readOnly); err != nil {
		return State{}, backends.Errorf(kindOf(err), "setting the options of the bind mount of %q (read-only %t%s): %w",
			source, readOnly, listed(options), err)
	}
	return attach(tree, source, target)
}

// proven asks prove about an unattached mount of the source. Some FUSE servers answer a change with another inode
// number than a look, and the kernel keeps the last one. So a server is asked before its files count as others.
func proven(tree int, source string, prove func(State) error) (refusal error) {
	for _, flags := range []int{unix.AT_STATX_DONT_SYNC, 0} {
		found, err := glanceOpen(tree, source, flags)
		if err != nil {
			return err
		}
		if refusal = prove(found); refusal == nil {
			return nil
		}
	}
	return refusal
}

// cloneTree returns an unattached mount of the source.
func cloneTree(source string) (int, error) {
	at, err := safepath.OpenTarget(source)
	if err != nil {
		return -1, err
	}
	defer func() { _ = at.Close() }() // O_PATH
	file, err := at.Open()
	if err != nil {
		return -1, err
	}
	defer func() { _ = file.Close() }() // O_PATH
	tree, err := unix.OpenTree(int(file.Fd()), "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.O_CLOEXEC)
	if err != nil {
		return -1, backends.Errorf(kindOf(err), "cloning the mount at %q: %w", source, err)
	}
	return tree, nil
}

// attach moves an unattached mount onto the target, and returns the state of the target afterwards.
func attach(mount int, what string, target *safepath.Target) (State, error) {
	place, err := target.Open()
	if err != nil {
		return State{}, err
	}
	defer func() { _ = place.Close() }() // O_PATH
	root, err := glanceOpen(mount, what, unix.AT_STATX_DONT_SYNC)
	if err != nil {
		return State{}, err
	}
	if err := checkPlace(root, what, place); err != nil {
		return State{}, err
	}
	err = unix.MoveMount(mount, "", int(place.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return State{}, backends.Errorf(kindOf(err), "mounting %q at %q: %w", what, place.Name(), err)
	}
	return root, nil
}

// checkPlace refuses a target that move_mount(2) would refuse with a bare EINVAL, and one where something is mounted.
func checkPlace(root State, what string, place *os.File) error {
	below, err := glanceOpen(int(place.Fd()), place.Name(), unix.AT_STATX_DONT_SYNC)
	if err != nil {
		return err
	}
	if below.Mounted {
		return backends.Errorf(backends.Exists, "something is mounted at %q already: %q is not mounted over it", place.Name(),
			what)
	}
	if root.Dir != below.Dir {
		return backends.Errorf(backends.Invalid, "%q is %s and %q is %s: one cannot be mounted on the other",
			what, dirOrFile(root), place.Name(), dirOrFile(below))
	}
	return nil
}

// listed formats options for a message.
func listed(options []string) string {
	if len(options) == 0 {
		return ""
	}
	return ", " + secret.Options(options)
}

func dirOrFile(s State) string {
	if s.Dir {
		return "a directory"
	}
	return "a file"
}

// closeFd closes the descriptor of a mount, a tree or a context, which has nothing to write back.
func closeFd(fd int) { _ = unix.Close(fd) }

// kindOf maps the errors of the mount system calls to Kinds.
func kindOf(err error) backends.Kind {
	errno, _ := errors.AsType[unix.Errno](err)
	switch errno {
	case unix.ENOENT:
		return backends.NotFound
	case unix.EINVAL, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG, unix.ENOTBLK:
		return backends.Invalid
	case unix.EBUSY:
		return backends.InUse
	case unix.EACCES, unix.EPERM, unix.EROFS:
		return backends.Denied
	case unix.ENODEV, unix.ENOSYS, unix.EOPNOTSUPP:
		return backends.Unsupported
	case unix.ENXIO, unix.EIO, unix.ENOMEM, unix.ENOTCONN, unix.ESTALE, unix.ETIMEDOUT,
		unix.ECONNREFUSED, unix.ECONNRESET, unix.EHOSTUNREACH, unix.EHOSTDOWN, unix.ENETUNREACH, unix.EAGAIN:
		return backends.Unavailable
	case unix.ENOSPC, unix.EMFILE, unix.ENFILE:
		return backends.Exhausted
	case unix.EBADMSG, unix.EUCLEAN:
		return backends.Unknown // damaged
	}
	return backends.Unknown
}
