package mount

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// Filesystem is a filesystem that can be mounted.
type Filesystem struct {
	Type     string   // the kernel's name, such as ext4 or nfs4
	Source   string   // the device node, or its equivalent for the type
	Options  []string // requested mount options, one per element; package mountoptions defines the allowed ones
	Needs    []string // further options that the filesystem needs
	ReadOnly bool
	Export   bool // on another host; its backend has checked the options and added its own
	// Dev, unless 0, is the number of the proven device. The mount must be on that device.
	Dev uint64
	// Prove, unless nil, checks the root of the mount, open with O_PATH, before the mount is visible.
	Prove func(ctx context.Context, root *os.File) error
}

// Mount mounts a filesystem at the target and returns the state of the target afterwards, except ReadOnly. If the
// context ends first, it returns without the mount. The mount then never appears at the target, even if the kernel
// still works on it.
//
// Kinds: Invalid for an option that is not allowed or that the kernel refuses, with the kernel's words;
// Unsupported when the kernel does not know the type; NotFound when the source or the target is not there;
// InUse when the device is; Denied when the device is read-only and fs is not; Exists when something is
// mounted at the target already; Unavailable when the source does not answer, is another device than Dev,
// or the context ended; else those of Prove.
func Mount(ctx context.Context, fs Filesystem, target *safepath.Target) (State, error) {
	if err := fs.checkOptions(); err != nil {
		return State{}, err
	}
	mount, err := unattachedBy(ctx, fs, target)
	if err != nil {
		return State{}, err
	}
	defer closeFd(mount)
	if err := proveDevice(mount, fs); err != nil {
		return State{}, err
	}
	return attach(mount, fs.Source, target)
}

// checkOptions checks the options against the list for the filesystem type. An export is on no device and has no such
// list: only its backend knows which options are allowed.
func (fs *Filesystem) checkOptions() error {
	if fs.Export {
		return mountoptions.Check(fs.Options)
	}
	return mountoptions.CheckFor(fs.Type, fs.Options)
}

// unattached mounts the filesystem without attaching it, and returns the mount's descriptor.
func unattached(fs Filesystem) (int, error) {
	fsfd, err := unix.Fsopen(fs.Type, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, backends.Errorf(kindOf(err), "filesystem type %q cannot be mounted here: %w", fs.Type, err)
	}
	defer closeFd(fsfd)
	fc := fscontext{fd: fsfd, fs: fs}
	attributes, err := fc.configure()
	if err != nil {
		return -1, err
	}
	fc.unforgotten = fs.forget()
	if err := unix.FsconfigCreate(fsfd); err != nil {
		return -1, fc.failure(err)
	}
	mount, err := unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, attributes)
	if err != nil {
		return -1, fc.failure(err)
	}
	return mount, nil
}

// fscontext is a filesystem context (fsopen(2)) during its configuration.
type fscontext struct {
	fd          int
	fs          Filesystem
	unforgotten error // why the kernel may still remember the device
}

// configure passes source and options to the kernel and returns the mount's own attributes.
func (c *fscontext) configure() (attributes int, err error) {
	if err := unix.FsconfigSetString(c.fd, "source", c.fs.Source); err != nil {
		return 0, c.failure(err)
	}
	readOnly := c.fs.ReadOnly
	for _, option := range slices.Concat(c.fs.Options, c.fs.Needs) {
		set, reset, ok := attribute(option)
		switch {
		case ok:
			attributes = attributes&^reset | set
		case option == "ro":
			readOnly = true
		case option == "rw":
			readOnly = c.fs.ReadOnly
		case mountoptions.Ignored(option):
		default:
			if err := c.set(option); err != nil {
				return 0, err
			}
		}
	}
	if readOnly {
		attributes |= unix.MOUNT_ATTR_RDONLY
		return attributes, c.set("ro")
	}
	return attributes, nil
}

// set passes one option to the filesystem.
func (c *fscontext) set(option string) error {
	var err error
	if name, value, pair := strings.Cut(option, "="); pair {
		err = unix.FsconfigSetString(c.fd, name, valueOf(option, value))
	} else {
		err = unix.FsconfigSetFlag(c.fd, name)
	}
	if err == nil {
		return nil
	}
	why := c.words()
	if mountoptions.SecurityLabel(option) && !selinux() {
		why += "; SELinux is not enabled in this node's kernel: leave the option out, or set seLinuxMount: false in the " +
			"CSIDriver"
	}
	return backends.Errorf(backends.Invalid, "filesystem %s refuses mount option %q: %w%s", c.fs.Type,
		secret.Option(option), err, why)
}

func (c *fscontext) failure(err error) error {
	return backends.Errorf(c.failureKind(err), "mounting %q as %s%s: %w%s%s%s", c.fs.Source, c.fs.Type, c.withOptions(),
		err, c.words(), c.confusion(err), c.advice(err))
}

func (c *fscontext) withOptions() string {
	options := slices.Concat(c.fs.Options, c.fs.Needs)
	if len(options) == 0 {
		return ""
	}
	return " with options " + secret.Options(options)
}

// failureKind is kindOf for the step that reads the superblock. There ENODEV means that the device is gone, and so does
// a proven node that is missing or no longer a block device (ENOENT, ENOTBLK). EEXIST is about another device with the
// same btrfs, which may be unmounted. EINVAL is about the contents of the device unless there were options that it can
// be about. A damaged filesystem (EBADMSG, EUCLEAN) is Unknown: only a person may decide to repair it, because a repair
// may lose data.
func (c *fscontext) failureKind(err error) backends.Kind {
	kind := kindOf(err)
	proven := c.fs.Dev != 0
	switch {
	case kind == backends.Unsupported, proven && aboutDevices(err):
		return backends.Unavailable
	case kind == backends.Invalid && len(c.fs.Options) == 0:
		return backends.Unknown
	}
	return kind
}

// aboutDevices reports whether an error is about the proven device itself, or about another one.
func aboutDevices(err error) bool {
	return errors.Is(err, unix.ENOTBLK) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EEXIST)
}

// logWords bounds how many messages are copied into an error.
const logWords = 8

// words reads the messages that the kernel left in the context (fsopen(2), "Retrieving status"). Each is prefixed by
// its level: "e ", "w " or "i ".
func (c *fscontext) words() string {
	var b strings.Builder
	buf := make([]byte, 1024)
	for range logWords {
		n, err := unix.Read(c.fd, buf)
		if err != nil || n <= 0 {
			break
		}
		message := strings.TrimSpace(string(buf[:n]))
		if len(message) > 2 && message[1] == ' ' {
			message = message[2:]
		}
		b.WriteString("; the kernel says: ")
		b.WriteString(c.hide(message))
	}
	return b.String()
}

// hide redacts the kernel's message if an option was secret: the message may repeat its value.
func (c *fscontext) hide(message string) string {
	secretive := func(option string) bool { return secret.Option(option) != option }
	if slices.ContainsFunc(c.fs.Options, secretive) {
		return secret.Option(message)
	}
	return message
}

// proveDevice checks that the mount is on the expected device.
func proveDevice(mount int, fs Filesystem) error {
	switch {
	case fs.Dev == 0:
		return nil
	case fs.Type == "btrfs":
		return proveBtrfs(mount, fs)
	}
	root, err := glanceOpen(mount, fs.Source, unix.AT_STATX_DONT_SYNC)
	if err != nil {
		return err
	}
	if root.Dev != fs.Dev {
		return backends.Errorf(backends.Unavailable,
			"%q is not the device that was proven: its filesystem is on %d:%d, expected %d:%d",
			fs.Source, unix.Major(root.Dev), unix.Minor(root.Dev), unix.Major(fs.Dev), unix.Minor(fs.Dev))
	}
	return nil
}
