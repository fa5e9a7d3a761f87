package filesystem

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/classes"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// Request says what Format creates, and where.
type Request struct {
	Path     string           // the device node
	Held     *os.File         // the proven device itself, open for writing
	FSType   string           // one of Types
	Volume   string           // the handle of the device's volume
	Geometry classes.Geometry // its layout
	// Whole requires that every byte of the device is read before it counts as blank. Of an image everything that its file
	// holds is read in any case.
	Whole bool
}

// mark returns the mark that is on the device during the format.
func (r Request) mark() Mark { return Mark{r.Volume, r.FSType} }

// Types returns the filesystems that Format can create; the first is the default.
func Types() []string { return mountoptions.Filesystems() }

// maker is how to create one type of filesystem.
type maker struct {
	pkg   string // the Debian package of its tools
	tools []string
	args  []string
	force string
}

// makerOf returns the maker of the type.
func makerOf(fsType string) (maker, bool) {
	switch fsType {
	case "ext4":
		// No blocks are reserved for root: a volume's user is seldom root, and must get the requested size. The kernel clears
		// the inode tables after the mount. The journal is cleared at once, because old blocks in it could be replayed.
		return maker{"e2fsprogs", []string{"mkfs.ext4", "e2fsck", "resize2fs"},
			[]string{"-q", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=0,nodiscard"}, "-F"}, true
	case "xfs":
		return maker{"xfsprogs", []string{"mkfs.xfs"}, []string{"-q", "-K"}, "-f"}, true
	case "btrfs":
		return maker{"btrfs-progs", []string{"mkfs.btrfs"}, []string{"-q", "-K"}, "-f"}, true
	}
	return maker{}, false
}

// Missing returns an error if a tool for the type is not installed. Kinds: Unsupported, naming the tool and the Debian
// package; Invalid for a type that is not one of Types, nor ext2 or ext3.
func Missing(fsType string) error {
	if isExt(fsType) {
		fsType = "ext4"
	}
	m, ok := makerOf(fsType)
	if !ok {
		return backends.Errorf(backends.Invalid, "filesystem type %q is not supported: use %s", fsType,
			strings.Join(Types(), ", "))
	}
	for _, tool := range m.tools {
		if _, ok := lookTool(tool); !ok {
			return backends.Errorf(backends.Unsupported,
				"%s is not installed on this node: filesystem type %s needs the Debian package %s", tool, fsType, m.pkg)
		}
	}
	return nil
}

// proof returns how much of the device is read, within a turn, before it counts as blank.
func (r Request) proof(size int64, n *turn) reading {
	proof := reading{quickWhole, math.MaxInt64, n.reads}
	if r.Whole {
		proof.quick = size
	}
	return proof
}

// Format creates a filesystem on a device. It first proves itself that the device is blank, however long reading it
// takes. It returns what is on the device afterwards, also if that is the reason for not formatting it. The Mark is on
// the device meanwhile: what an interrupted call left is formatted again.
//
// Kinds: InUse when the device holds something, naming it; Invalid for a type that is not one of Types, a Geometry that
// it cannot have, or a Volume that is too long for a Mark; OutOfRange for a device that is too small; Unsupported when
// a tool for the type is not installed; Busy when another tool works on the device; Unavailable when the device cannot
// be read or written, is not the held one, or the context ended: mkfs is killed then, and this returns once it is dead,
// and once a mark that is being written or erased is on the device; Unknown when mkfs fails.
func (t *Tools) Format(ctx context.Context, req Request) (Found, error) {
	m, err := req.maker()
	if err != nil {
		return Found{}, err
	}
	locked, err := lockDevice(ctx, req.Path)
	if err != nil {
		return Found{}, err
	}
	defer locked.unlock()
	size, err := req.size(locked)
	if err != nil {
		return Found{}, err
	}
	if least := classes.Least(req.FSType); size < least {
		return Found{}, backends.Errorf(backends.OutOfRange, "%s has %d bytes: filesystem %s needs at least %d", req.Path,
			size, req.FSType, least)
	}
	if locked.turn, err = t.take(ctx, req.Path); err != nil {
		return Found{}, err
	}
	defer locked.turn.release()
	found, err := probeUpTo(ctx, req.Held, size, req.proof(size, locked.turn))
	if err != nil {
		return Found{}, err
	}
	force, err := req.mayFormat(found)
	if err != nil {
		return found, err
	}
	args := slices.Concat(m.args, optionsOf(req.Geometry, req.FSType))
	if force {
		args = append(args, m.force)
	}
	return req.mkfs(ctx, command{tool: m.tools[0], args: append(args, req.Path), device: locked}, size)
}

// maker checks what can be checked without the device.
func (r Request) maker() (maker, error) {
	if !slices.Contains(Types(), r.FSType) {
		return maker{}, backends.Errorf(backends.Invalid, "filesystem type %q is not supported: use %s", r.FSType,
			strings.Join(Types(), ", "))
	}
	if err := Missing(r.FSType); err != nil {
		return maker{}, err
	}
	m, _ := makerOf(r.FSType)
	return m, r.Geometry.Check(r.FSType)
}

// size checks that the node is still that of the held device, and returns the device's size.
func (r Request) size(node *lockedDevice) (int64, error) {
	var held, named unix.Stat_t
	if err := unix.Fstat(int(r.Held.Fd()), &held); err != nil {
		return 0, backends.Errorf(backends.Unavailable, "looking at %s: %w", r.Path, err)
	}
	if err := unix.Fstat(int(node.Fd()), &named); err != nil {
		return 0, backends.Errorf(backends.Unavailable, "looking at %s: %w", r.Path, err)
	}
	if held.Mode&unix.S_IFMT != unix.S_IFBLK || named.Mode&unix.S_IFMT != unix.S_IFBLK || held.Rdev != named.Rdev {
		return 0, backends.Errorf(backends.Unavailable, "%s is not the device that was proven (%d:%d, expected %d:%d)",
			r.Path,
			unix.Major(named.Rdev), unix.Minor(named.Rdev), unix.Major(held.Rdev), unix.Minor(held.Rdev))
	}
	return device.SizeOf(r.Held)
}

// mayFormat decides whether mkfs may overwrite what was found, and whether it must be forced. A filesystem that looks
// finished and was never mounted is created again: mkfs.xfs also leaves one if one of its writes failed.
func (r Request) mayFormat(found Found) (force bool, err error) {
	if found.Blank() {
		return false, nil
	}
	same := found.Type == r.FSType || isExt(found.Type) && isExt(r.FSType)
	if found.Mark == r.mark() && (found.Type == UnknownData || same) {
		return true, nil
	}
	return false, backends.Errorf(backends.InUse,
		"%s holds %s: it is not formatted as %s, which is done to a blank device only", r.Path, found, r.FSType)
}

// mkfs puts the mark on the device, runs the tool and probes the result.
func (r Request) mkfs(ctx context.Context, c command, size int64) (Found, error) {
	if err := r.mark().write(ctx, r.Held, size); err != nil {
		return Found{}, err
	}
	result, err := run(ctx, c)
	if err != nil {
		return Found{}, err
	}
	if result.code != 0 {
		return Found{}, backends.Errorf(backends.Unknown, "%s on %s failed with exit code %d: %s", c.tool, r.Path,
			result.code, result.words)
	}
	if err := eraseMark(ctx, r.Held, size); err != nil {
		return Found{}, err
	}
	found, err := Probe(ctx, r.Held, size)
	if err != nil {
		return Found{}, err
	}
	if found.Type != r.FSType || found.Incomplete {
		return Found{}, backends.Errorf(backends.Unknown, "%s succeeded, but %s holds %s", c.tool, r.Path, found)
	}
	return found, nil
}
