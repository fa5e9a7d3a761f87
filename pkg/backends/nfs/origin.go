package nfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// origin is what a new volume or snapshot is filled with.
type origin struct {
	kind   kind   // empty for nothing
	handle string // of the volume or snapshot
	source backends.ContentSource
	// anyInstant accepts a copy of a volume that is written to meanwhile.
	anyInstant bool
	// since, unless it is zero, is the instant of which the copy must be, by the server's clock; else any during the copy will do.
	since time.Time

	folder string // the directory with the data, from the share's root; known once it was checked
}

const (
	// linksSuffix ends the name of the directory that a copy keeps beside itself: see tree.Replication.
	linksSuffix = ".links"
	// tick is longer than the steps of any filesystem's clock.
	tick = 20 * time.Millisecond
)

// check looks at the source, and returns its size in bytes. Kinds: NotFound.
func (o *origin) check(m *making) (int64, error) {
	if o.kind == "" {
		return 0, nil
	}
	h, err := m.parse(o.kind, o.handle)
	if err != nil {
		return 0, err
	}
	if !h.address.Same(m.share.Address) || h.home != m.home.Identity() {
		return 0, backends.Errorf(backends.Invalid, "the source is on %s and the copy is to be on %s: use a class of the source's share", h.where(), m.share.Address)
	}
	r, err := whole(m.home, o.kind, h.id)
	if err != nil {
		return 0, err
	}
	if o.folder = r.SubDir; o.kind == snapshotKind {
		o.folder = share.At(share.Snapshots, r.key())
	}
	return r.SizeBytes, nil
}

// copyFrom copies the origin into a draft, in the background. Kinds: Busy while it is under way; InUse when the origin
// was written to.
func (m *making) copyFrom(ctx context.Context, r *record, draft string) error {
	from := m.origin
	return m.copies.run(ctx, m.share.Address.String(), r.key(), func(ctx context.Context, progress *tree.Progress) error {
		s, release, err := m.share.Hold(ctx)
		if err != nil {
			return err
		}
		defer release()
		err = from.copyTo(ctx, s, draft, progress)
		if errors.Is(err, tree.ErrChanged) {
			return backends.Errorf(backends.InUse, "%s %s is written to, so that the copy is of no single instant: stop what writes, or accept that with sourceInUse=copy: %w", from.kind, from.handle, err)
		}
		return err
	})
}

func (o *origin) copyTo(ctx context.Context, s *share.Share, draft string, progress *tree.Progress) error {
	src, err := safepath.OpenBeneath(s.Dir(), o.folder)
	if err != nil {
		return backends.Errorf(backends.Unavailable, "the data of the source cannot be reached: %w", err)
	}
	defer closeQuietly(src)
	dst, err := openDir(s, draft)
	if err != nil {
		return err
	}
	defer closeQuietly(dst)
	links := draft + linksSuffix
	if err := s.Files().Mkdir(links, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	names, err := openDir(s, links)
	if err != nil {
		return err
	}
	defer closeQuietly(names)
	how := tree.Replication{Workers: copyWorkers, Links: names, Lenient: true, Lag: s.Lag(), Direct: s.Direct(), Progress: progress}
	if o.kind == volumeKind && !o.anyInstant {
		if how.Since, err = o.instant(ctx, dst); err != nil {
			return err
		}
	}
	if o.kind == volumeKind {
		if err := forget(ctx, s.Lag()); err != nil {
			return err
		}
	}
	if err := tree.Replicate(ctx, dst, src, how); err != nil {
		return err
	}
	return tree.Remove(ctx, path.Join(s.Path(), links))
}

// forget waits until the kernel knows nothing any more that is from before the call. Until then a file that a pod has just
// written may seem as long as it was at an earlier copy, and would be cut there; and one that is new may not seem to be there.
func forget(ctx context.Context, lag time.Duration) error {
	select {
	case <-time.After(lag):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// instant is the one of which the copy is to be.
func (o *origin) instant(ctx context.Context, dst *os.File) (unix.Timespec, error) {
	if o.since.IsZero() {
		return now(ctx, dst)
	}
	return unix.TimeToTimespec(o.since)
}

// now is the time of the server's filesystem, a little after the call began: what was changed before the call is older.
func now(ctx context.Context, dir *os.File) (unix.Timespec, error) {
	select {
	case <-time.After(tick):
	case <-ctx.Done():
		return unix.Timespec{}, ctx.Err()
	}
	if err := dir.Chmod(0o700); err != nil {
		return unix.Timespec{}, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil {
		return unix.Timespec{}, err
	}
	return stat.Ctim, nil
}

// closeQuietly closes a directory, or what was read only.
func closeQuietly(file *os.File) { _ = file.Close() }
