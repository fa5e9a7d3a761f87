package nfs

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// deepest is the maximum depth of a static volume below a server's root: each directory is checked for being a share.
const deepest = 32

// rooted returns the root from which a static volume must be reached without following a link, and the path from there.
// The root is the outermost share above the volume, because pods can create links on it: a share that is configured or
// known, or a directory that holds a share's records. The node cannot check directories that it may not mount. Without
// such a share, the root is the volume's own address. Kinds: Invalid for a volume in the driver's own directory, or too
// deep; Unavailable when it cannot be reached.
func (e *engine) rooted(ctx context.Context, address export.Address, dir string) (root export.Address, rel string,
	err error) {
	elements := strings.Split(strings.Trim(path.Join(address.Path, dir), "/"), "/")
	if len(elements) > deepest {
		return root, "", backends.Errorf(backends.Invalid, "%s is %d directories deep: %d are allowed", address.Below(dir),
			len(elements), deepest)
	}
	for i := range strings.Count(strings.TrimSuffix(address.Path, "/"), "/") {
		above := address
		above.Path, above.Version = "/"+path.Join(elements[:i]...), "" // The newest shows most of the directories below.
		if holds, err := e.holdsShare(ctx, above); err != nil {
			return root, "", err
		} else if holds {
			return above, path.Join(elements[i:]...), nil
		}
	}
	return address, cmp.Or(dir, "."), nil
}

// holdsShare reports whether a share's root is at a path that this node may mount. Kinds: Invalid for the driver's own
// directory; Unavailable when that cannot be determined.
func (e *engine) holdsShare(ctx context.Context, at export.Address) (bool, error) {
	if backends.Is(e.allow(at, within), backends.Denied) { // It is above all mountable shares, and those are known.
		return false, nil
	}
	var mounted, holds atomic.Bool
	err := e.pool.With(ctx, at, "looking for a share above a static volume",
		func(_ context.Context, s *share.Share) error {
			mounted.Store(true)
			if err := notOwn(s.Dir(), s.Address.String()); err != nil {
				return err
			}
			found, err := holdsHome(s.Dir())
			holds.Store(found)
			return err
		})
	if !mounted.Load() && isNoExport(err) {
		return false, nil
	}
	if err == nil && !holds.Load() && !e.isKnown(ctx, at) {
		e.pool.Drop(at)
		return false, nil
	}
	return err == nil, err
}

// isKnown reports whether a share is configured or known at a path.
func (e *engine) isKnown(ctx context.Context, at export.Address) bool {
	return slices.ContainsFunc(e.known.everywhere(), func(p place) bool {
		return p.Path == at.Path && e.mounter.SameServer(ctx, at.Server, p.Server)
	})
}

// isNoExport reports whether the server answered that a path is not exported to this node.
func isNoExport(err error) bool {
	return failure.IsAny(err, unix.ENOENT, unix.ENOTDIR, unix.EACCES, unix.EPERM, unix.ELOOP, unix.ESTALE, unix.EREMOTEIO,
		unix.ENAMETOOLONG)
}

// unreached returns the failure for a directory that cannot be reached.
func unreached(s *share.Share, dir string, err error) error {
	return backends.Errorf(backends.Unavailable, "the directory %s on %s cannot be reached: %w", dir, s.Address, err)
}
