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

// Policy says when the walk is made.
type Policy string

// The policies of a pod's fsGroupChangePolicy.
const (
	// Always walks each time.
	Always Policy = "Always"
	// OnRootMismatch walks only when the root is not as it would be after a walk, or when a walk of
	// ours was begun and not completed.
	OnRootMismatch Policy = "OnRootMismatch"
)

// Request says what is to belong to whom.
type Request struct {
	Path   string // the root of the volume, a directory
	GID    uint32
	Policy Policy // Always when empty
	// ReadOnly gives the group the right to read only: files that are not to be changed through a mount
	// that could.
	ReadOnly bool
	// Workers is how many entries are worked on at a time; 0 chooses by the number of processors.
	Workers int
	// Exclusive promises that nobody else can reach the files while the walk lasts: then an entry is still
	// what it was when it was looked at, and need not be held by a descriptor to be changed, which saves
	// half of the system calls. Where the promise is broken, a file can get the permissions of another one
	// of the same directory, as with the kubelet; nothing outside of the volume is touched even then.
	Exclusive bool
	Observer  Observer      // told of a walk; nil for nobody
	Every     time.Duration // how often it is told how far the walk has come; 0 for each second
}

// Result counts what was done.
type Result struct {
	Skipped bool  // there was no walk
	Entries int64 // looked at, the root included
	Changed int64
	Denied  int64 // could not be changed, and passed over
}

// ParseGID reads a group ID in decimal digits. Kinds: Invalid.
func ParseGID(text string) (uint32, error) {
	gid, err := strconv.ParseUint(text, 10, 32)
	// chown(2) takes the highest number for "leave it as it is".
	if err != nil || gid == math.MaxUint32 {
		return 0, backends.Errorf(backends.Invalid, "%q is not a group ID: it must be a decimal number from 0 to %d", text,
			uint32(math.MaxUint32-1))
	}
	return uint32(gid), nil
}

// Apply gives what is below the path, and the path itself, to a group. A filesystem that is mounted
// read-only is left alone. A run that was cut short is completed by calling again.
//
// Kinds: Invalid when the path is no directory, or for an unknown policy; Unavailable when the
// filesystem fails or the context ends; the walk is incomplete then, and known to be.
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
	w := &walker{want: want, exclusive: request.Exclusive}
	watch := w.watch(request.Observer, request.Every)
	err = w.marked(ctx, root, request.Workers)
	watch.end(err)
	return w.result(), failure(request.Path, err)
}

// marked makes the walk between its marks. One that passed something over is not complete.
func (w *walker) marked(ctx context.Context, root *os.File, workers int) error {
	if err := writeMark(root, mark{begun, w.want.gid}); err != nil {
		return err
	}
	err := w.walk(ctx, root, workers)
	if err == nil && w.denied.Load() == 0 {
		err = writeMark(root, mark{complete, w.want.gid})
	}
	return err
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

// isDue reports whether the walk has to be made.
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

// failure gives an error that has no Kind the only one that it can have here.
func failure(path string, err error) error {
	if err == nil || backends.KindOf(err) != backends.Unknown {
		return err
	}
	return backends.Errorf(backends.Unavailable, "applying the group to %s was cut short: %w", path, err)
}
