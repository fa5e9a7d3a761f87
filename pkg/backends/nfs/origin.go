package nfs

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// origin is the source of a new volume or snapshot.
type origin struct {
	kind   kind
	handle string // of the volume or snapshot
	source backends.ContentSource
	// anyInstant accepts a copy of a volume that is written to meanwhile.
	anyInstant bool

	// Known after the check.
	id     string
	turn   string
	size   int64  // in bytes
	folder string // the directory with the data, from the share's root
}

const (
	// linksSuffix ends the name of the directory that a copy keeps beside itself: see tree.Replication.
	linksSuffix = ".links"
	// tick is longer than the clock step of any filesystem.
	tick = 20 * time.Millisecond
)

// check looks up the source, and returns its size in bytes. Kinds: NotFound.
func (o *origin) check(m *making) (int64, error) {
	h, err := m.parse(o.kind, o.handle)
	if err != nil {
		return 0, err
	}
	if !h.address.Same(m.share.Address) || h.home != m.home.Identity() {
		return 0, backends.Errorf(backends.Invalid,
			"the source is on %s and the copy is to be on %s: use a class of the source's share", h.where(), m.share.Address)
	}
	r, err := m.byHandle(m.home, o.kind, h.id)
	if err != nil {
		return 0, err
	}
	if o.folder = r.SubDir; o.kind == snapshotKind {
		o.folder = share.At(share.Snapshots, r.key())
	}
	o.id, o.turn, o.size = r.ID, r.Turn, r.SizeBytes
	return r.SizeBytes, m.settle(m.share, m.home, r)
}

// keysOf returns the keys of the sources, which differ from those of earlier and later items of the same names.
func keysOf(origins []origin) (keys []string) {
	for _, from := range origins {
		keys = append(keys, from.id+"-"+from.turn)
	}
	return keys
}

// intact fails when the source is not there any more: what was read of it may have been removed meanwhile. Deleting
// takes the record away before any data. So where the record is there after the copy, whichever controller deletes, the
// copy is whole. Kinds: NotFound.
func (o *origin) intact(m *making) error {
	err := m.home.Refresh(o.kind.folder())
	if err == nil {
		err = ignoreGone(m.home.Refresh(share.Groups)) // Only a snapshot of a group needs its record, which is read then.
	}
	if err != nil {
		return err
	}
	r, err := m.whole(m.home, o.kind, o.id)
	if err == nil && r.Turn != o.turn {
		err = backends.Errorf(backends.NotFound, "there is another %s of that name", o.kind)
	}
	if backends.Is(err, backends.NotFound) {
		return backends.Errorf(backends.NotFound, "the %s %s was deleted while it was copied: %w", o.kind, o.handle, err)
	}
	return err
}

// copyAll copies the origins into the draft. All copies are of the same instant. Kinds: InUse when an origin was
// written to; NotFound when one was deleted; Exhausted.
func (m *making) copyAll(ctx context.Context, r *record, progress *tree.Progress) error {
	begun, drafts := time.Now(), r.drafts()
	at, err := m.instant(ctx, drafts[0])
	if err != nil {
		return err
	}
	if err := forget(ctx, m.share.Lag()); err != nil {
		return err
	}
	for i := range m.origins {
		c := &copying{making: m, from: &m.origins[i], draft: share.At(share.Staging, drafts[i]), progress: progress}
		if m.origins[i].exact() {
			c.since, c.rest = at, m.restless.asked(m.origins[i].id)
		}
		if err := c.run(ctx); err != nil {
			return c.explained(err, time.Since(begun))
		}
	}
	for i := range m.origins {
		if err := m.origins[i].intact(m); err != nil {
			return err
		}
		m.restless.calm(m.origins[i].id)
	}
	if r.Kind == groupKind {
		return m.writeMembers(r)
	}
	return nil
}

// exact reports whether the copy must be of one instant. Nobody writes to a snapshot.
func (o *origin) exact() bool { return o.kind == volumeKind && !o.anyInstant }

// instant is the time of the server's filesystem, a little after the call began: what was changed before the call is
// older.
func (m *making) instant(ctx context.Context, draft string) (at tree.Instant, err error) {
	dir, err := openDir(m.share, share.At(share.Staging, draft))
	if err != nil {
		return at, err
	}
	defer closeQuietly(dir)
	if err := forget(ctx, tick); err != nil {
		return at, err
	}
	at.At, err = serverTime(dir)
	at.Seen = time.Now()
	return at, err
}

// serverTime returns the time of the filesystem of one of the driver's own directories.
func serverTime(dir *os.File) (unix.Timespec, error) {
	if err := dir.Chmod(0o700); err != nil {
		return unix.Timespec{}, err
	}
	var stat unix.Stat_t
	err := unix.Fstat(int(dir.Fd()), &stat)
	return stat.Ctim, err
}

// forget waits until the kernel's cached attributes are all newer than the call. Before that, a file that a pod has
// just written may seem as short as at an earlier copy and would be truncated, and a new file may seem not to exist.
func forget(ctx context.Context, lag time.Duration) error {
	select {
	case <-time.After(lag):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closeQuietly closes a directory, or a file that was only read.
func closeQuietly(file *os.File) { _ = file.Close() }
