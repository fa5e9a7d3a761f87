package ownership

import (
	"context"
	"errors"
	"math"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Policy says when a walk is necessary.
type Policy string

// The policies of a pod's fsGroupChangePolicy.
const (
	// Always walks each time.
	Always Policy = "Always"
	// OnRootMismatch walks only if the root is not as it would be after a walk, or if a walk of this package was begun and
	// not completed.
	OnRootMismatch Policy = "OnRootMismatch"
)

// Request says which files to give to which group.
type Request struct {
	Path   string // the root of the volume, a directory
	GID    uint32
	Policy Policy // Always when empty
	// ReadOnly gives the group only the right to read. It is for files that are not to be changed through a writable
	// mount.
	ReadOnly bool
	// Workers is how many entries are processed concurrently; 0 chooses by the number of processors.
	Workers int
	// Exclusive promises that no one else can reach the files during the walk. Then an entry does not change between
	// inspection and change and need not be held by a descriptor, which saves half of the system calls. If the promise is
	// broken, a file can get the permissions of another file of the same directory, as with the kubelet. Even then nothing
	// outside of the volume is touched.
	Exclusive bool
	Observer  Observer      // observes the walk; nil for none
	Every     time.Duration // how often it gets the progress; 0 for each second
}

// Result counts the entries of a walk.
type Result struct {
	Skipped bool  // there was no walk
	Entries int64 // visited, including the root
	Changed int64
	Denied  int64 // skipped because they could not be changed
}

// ParseGID reads a group ID in decimal digits. Kinds: Invalid.
func ParseGID(text string) (uint32, error) {
	gid, err := strconv.ParseUint(text, 10, 32)
	// chown(2) treats the highest number as "leave it unchanged".
	if err != nil || gid == math.MaxUint32 {
		return 0, backends.Errorf(backends.Invalid, "%q is not a group ID: it must be a decimal number from 0 to %d", text,
			uint32(math.MaxUint32-1))
	}
	return uint32(gid), nil
}

// Apply gives the path and everything below it to a group. A filesystem that is mounted read-only is left alone. A walk
// that was cut short is completed by calling Apply again.
//
// Kinds: Invalid when the path is no directory, or for an unknown policy; Unavailable when the filesystem fails or the
// context ends; the walk is incomplete then, and known to be.
func Apply(ctx context.Context, request Request) (Result, error) {
	root, err := openRoot(request)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = root.Close() }() // a directory has nothing to write back
	want := wanted{gid: request.GID, readOnly: request.ReadOnly}
	due, err := isDue(root, request.Policy, want)
	if err != nil || !due {
		return Result{Skipped: true}, failure(request.Path, err)
	}
	w := &walker{want: want, exclusive: request.Exclusive, isBtrfs: isBtrfs(root)}
	watch := w.watch(request.Observer, request.Every)
	err = w.marked(ctx, root, request.Workers)
	watch.end(err)
	return w.result(), failure(request.Path, err)
}

// marked walks between writing its marks.
func (w *walker) marked(ctx context.Context, root *os.File, workers int) error {
	if err := writeMark(root, mark{begun, w.want.gid}); err != nil {
		return err
	}
	return w.finish(root, w.walk(ctx, root, workers))
}

// finish writes the mark of a walk that has ended. A walk that skipped an entry is not complete. It writes its mark
// again, which fails if the entry was skipped because a whole btrfs has become read-only.
func (w *walker) finish(root *os.File, err error) error {
	if err != nil {
		return err
	}
	m := mark{complete, w.want.gid}
	if w.denied.Load() > 0 {
		m.progress = begun
	}
	return writeMark(root, m)
}

func openRoot(request Request) (*os.File, error) {
	switch request.Policy {
	case "", Always, OnRootMismatch:
	default:
		return nil, backends.Errorf(backends.Invalid, "the fsGroupChangePolicy %q is not known: use %s or %s", request.Policy,
			Always, OnRootMismatch)
	}
	root, err := os.OpenFile(request.Path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP):
		return nil, backends.Errorf(backends.Invalid,
			"%s is not a directory: a group can be given a volume with a filesystem only", request.Path)
	case err != nil:
		return nil, failure(request.Path, err)
	}
	return root, nil
}

// isDue reports whether a walk is necessary.
func isDue(root *os.File, policy Policy, want wanted) (bool, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(root.Fd()), &fs); err != nil {
		return false, os.NewSyscallError("fstatfs", err)
	}
	if fs.Flags&unix.ST_RDONLY != 0 {
		return false, nil
	}
	if policy != OnRootMismatch {
		return true, nil
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &stat); err != nil {
		return false, os.NewSyscallError("fstat", err)
	}
	found, err := readMark(root)
	return !want.met(stat) || found != (mark{}) && found != (mark{complete, want.gid}), err
}

func isBtrfs(root *os.File) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(int(root.Fd()), &fs) == nil && fs.Type == unix.BTRFS_SUPER_MAGIC
}

// failure returns Unavailable for an error that has no Kind of its own: no other is possible here.
func failure(path string, err error) error {
	if _, kinded := errors.AsType[*backends.Error](err); err == nil || kinded {
		return err
	}
	return backends.Errorf(backends.Unavailable, "applying the group to %s was cut short: %w", path, err)
}
