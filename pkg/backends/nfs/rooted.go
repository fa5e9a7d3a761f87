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

// deepest is how many directories a static volume may be below a server's root: each is asked whether it is a share.
const deepest = 32

// rooted finds from where a static volume must be reached without following a link, and the way from there: from the
// outermost share above it, on which pods can make links. That is one that is configured or known, or a directory that
// holds a share's records. What this node may not mount it cannot look at; where there is no such share, it is the
// volume's own address. Kinds: Invalid for what lies in the driver's own directory, or too deep; Unavailable when it
// cannot be reached.
func (e *engine) rooted(ctx context.Context, address export.Address, dir string) (root export.Address, rel string,
	err error) {
	elements := strings.Split(strings.Trim(path.Join(address.Path, dir), "/"), "/")
	if len(elements) > deepest {
		return root, "", backends.Errorf(backends.Invalid, "%s is %d directories deep: %d are allowed", address.Below(dir),
			len(elements), deepest)
	}
	for i := range strings.Count(strings.TrimSuffix(address.Path, "/"), "/") {
		above := address
		above.Path, above.Version = "/"+path.Join(elements[:i]...), "" // The newest shows most of what is below.
		if holds, err := e.holdsShare(ctx, above); err != nil {
			return root, "", err
		} else if holds {
			return above, path.Join(elements[i:]...), nil
		}
	}
	return address, cmp.Or(dir, "."), nil
}

// holdsShare reports whether a share's root is at a path that this node may mount. Kinds: Invalid for the driver's own
// directory; Unavailable when nobody can tell.
func (e *engine) holdsShare(ctx context.Context, at export.Address) (bool, error) {
	if backends.Is(e.allow(at, within), backends.Denied) { // It is above all that may be mounted, and those are known.
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

// isNoExport reports whether the server has answered that a path is not exported to this node.
func isNoExport(err error) bool {
	return failure.IsAny(err, unix.ENOENT, unix.ENOTDIR, unix.EACCES, unix.EPERM, unix.ELOOP, unix.ESTALE, unix.EREMOTEIO,
		unix.ENAMETOOLONG)
}

// unreached says that a directory is not there.
func unreached(s *share.Share, dir string, err error) error {
	return backends.Errorf(backends.Unavailable, "the directory %s on %s cannot be reached: %w", dir, s.Address, err)
}
