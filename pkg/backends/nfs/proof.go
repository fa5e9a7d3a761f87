package nfs

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// spot is a directory that a node will mount. The kernel and the server follow symlinks on the path of a mount, and
// pods can create those. So it must be the directory that is reached from the root without following any.
type spot struct {
	address export.Address // with the negotiated version
	dir     string         // below that; empty for itself
	visit   visit
	// static says that the driver did not create it: then it must hold no records either.
	static bool
}

// visit calls look on a directory that is reached without following a link.
type visit func(ctx context.Context, look func(s *share.Share, dir *os.File) error) error

// visitMade returns the visit of a volume's directory. The share and the record must exist each time, because an
// attacker may replace the share's root.
func (e *engine) visitMade(hd handle, subDir string) visit {
	return func(ctx context.Context, look func(s *share.Share, dir *os.File) error) error {
		return e.at(ctx, hd, "looking at a volume's directory",
			func(_ context.Context, s *share.Share, h *share.Home, id string) error {
				r, err := e.seenByNode(h, id)
				if err != nil {
					return err
				}
				if r.SubDir != subDir {
					return backends.Errorf(backends.Unavailable, "its directory was %s, and is %s now", subDir, r.SubDir)
				}
				return lookBelow(s, subDir, safepath.FindBeneath, look)
			})
	}
}

// visitStatic returns the visit of a directory that the driver did not create. Other filesystems of the server may be
// on the path.
func (e *engine) visitStatic(root export.Address, rel string) visit {
	return func(ctx context.Context, look func(s *share.Share, dir *os.File) error) error {
		return e.pool.With(ctx, root, "looking at a static volume", func(_ context.Context, s *share.Share) error {
			return noteVersion(s, lookBelow(s, rel, safepath.FindAcross, look))
		})
	}
}

func lookBelow(s *share.Share, rel string, find func(*os.File, string) (*os.File, error),
	look func(s *share.Share, dir *os.File) error) error {
	dir, err := find(s.Dir(), rel)
	if err != nil {
		return unreached(s, rel, err)
	}
	defer closeQuietly(dir)
	return look(s, dir)
}

// noteVersion adds why a directory that the server has may be missing.
func noteVersion(s *share.Share, err error) error {
	if err == nil || s.Version != "3" {
		return err
	}
	return backends.Errorf(backends.KindOf(err), "%w; NFS 3, by which %s is mounted, shows no other filesystem of the "+
		"server below: if there is one on the way, use nfsvers 4.1", err, s.Address)
}

// glimpse distinguishes a directory from all others of its server. It holds the server's own file handle, if the client
// shows it. Otherwise it holds the inode number, together with the time of the last change. The number alone is not
// sufficient: another filesystem may have it too, and an attacker who creates directories there can wait for it.
type glimpse struct {
	handle  string
	inode   uint64
	changed unix.StatxTimestamp
}

// looks is the maximum number of looks at a directory that changes all the time.
const looks = 10

// prove shows that the mounted directory is the one at the spot. Kinds: Unavailable when it is not.
func (e *engine) prove(ctx context.Context, at spot, mounted *os.File) error {
	if at.static {
		if err := noneIn(mounted, at.address.Below(at.dir)); err != nil { // It held no records before.
			return backends.Errorf(backends.Unavailable, "%w", err)
		}
	}
	for range looks {
		before, err := at.glimpse(ctx)
		if err != nil {
			return err
		}
		have, err := glimpseOf(mounted)
		if err != nil {
			return backends.Errorf(backends.Unavailable, "looking at what was mounted from %s: %w", at.address.Below(at.dir),
				err)
		}
		if have.handle != "" && have.handle == before.handle {
			return nil
		}
		after, err := at.glimpse(ctx)
		if err != nil {
			return err
		}
		if have.inode != before.inode {
			break
		}
		if have.isAt(before) && have.isAt(after) {
			return nil
		}
	}
	return at.visit(ctx, func(s *share.Share, _ *os.File) error {
		return backends.Errorf(backends.Unavailable, "what was mounted from %s is not the directory that is reached from %s "+
			"without following symlinks: name the directory itself, if one is on the way; if it was just replaced, or changes "+
			"all the time, the next attempt may succeed", at.address.Below(at.dir), s.Address)
	})
}

// glimpse looks at a spot. Kinds: Unavailable when it cannot be reached.
func (at spot) glimpse(ctx context.Context) (glimpse, error) {
	var found atomic.Pointer[glimpse]
	err := at.visit(ctx, func(_ *share.Share, dir *os.File) error {
		look, err := glimpseOf(dir)
		found.Store(&look)
		return err
	})
	if err != nil {
		return glimpse{}, err
	}
	return *found.Load(), nil
}

// glimpseOf looks at the server's current state of an open directory.
func glimpseOf(dir *os.File) (glimpse, error) {
	var x unix.Statx_t
	const flags = unix.AT_EMPTY_PATH | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_FORCE_SYNC
	err := unix.Statx(int(dir.Fd()), "", flags, unix.STATX_INO|unix.STATX_CTIME, &x)
	look := glimpse{inode: x.Ino, changed: x.Ctime}
	if handle, _, failed := unix.NameToHandleAt(int(dir.Fd()), "", unix.AT_EMPTY_PATH); failed == nil {
		look.handle = fmt.Sprintf("%d %x", handle.Type(), handle.Bytes())
	}
	return look, err
}

// isAt reports whether two glimpses are of one directory at one moment.
func (g glimpse) isAt(other glimpse) bool {
	return g.inode == other.inode && g.changed == other.changed
}
