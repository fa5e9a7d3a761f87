package local

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local/freeze"
	"github.com/stowage-csi/stowage/pkg/filecopy"
)

// lookLimit bounds the time to find out how images are used. The copy itself has no limit.
const lookLimit = time.Minute

// copyImages makes copies that all show the same instant. Kinds: InUse when the present use of an image rules that out;
// Unavailable when an image has lost data.
func (e *engine) copyImages(ctx context.Context, copies []dataCopy) error {
	for _, c := range copies { // Check before anything is frozen.
		if info, err := os.Lstat(c.from); err != nil {
			return err
		} else if err := checkImage(info, c.size); err != nil {
			return err
		}
	}
	looking, cancel := context.WithTimeout(e.waiting.calls.With(ctx), lookLimit)
	defer cancel()
	uses, err := findUses(looking, copies)
	if err != nil {
		return err
	}
	if err := e.checkUses(copies, uses); err != nil {
		return err
	}
	for i := range copies {
		copies[i].moving = uses[i].Raw
	}
	if len(copies) == 1 && copies[0].shares() {
		err := e.copyFlushed(ctx, copies[0], uses[0])
		if uses[0].Raw || !filecopy.NotSupported(err) {
			return e.explainMoving(copies, err)
		}
	}
	return e.explainMoving(copies, e.copyFrozen(ctx, copies, uses))
}

// copyFlushed copies an image as of one instant, with everything that was written to it before.
func (e *engine) copyFlushed(ctx context.Context, c dataCopy, use freeze.Use) error {
	if err := use.Flush(ctx); err != nil {
		return err
	}
	e.copies(ctx)
	c.moving = c.volume.inUse.Load()
	return c.run(ctx)
}

// explainMoving explains why a raw device in use cannot be copied as of one instant. Kinds: InUse.
func (e *engine) explainMoving(copies []dataCopy, err error) error {
	i := slices.IndexFunc(copies, func(c dataCopy) bool { return c.moving })
	if i < 0 || !filecopy.NotSupported(err) {
		return err
	}
	return backends.Errorf(backends.InUse,
		"volume %s is in use on node %q as a raw device, which cannot be brought to rest, and its image cannot share its "+
			"blocks with a new file: "+
			"stop what uses it, or see to it that both are copied on write (lsattr shows C for those that are not): %w",
		copies[i].volume.record.Load().Handle, e.node, err)
}

// findUses finds out how each image is used. That is costly, so it skips images that are not staged.
func findUses(ctx context.Context, copies []dataCopy) ([]freeze.Use, error) {
	uses := make([]freeze.Use, len(copies))
	for i, c := range copies {
		if c.volume == nil || !c.volume.inUse.Load() {
			continue
		}
		use, err := freeze.Find(ctx, c.from)
		if err != nil {
			return nil, err
		}
		// The image is staged, so a writer is about to open it.
		use.Raw = use.Raw || len(use.Loops) == 0
		uses[i] = use
	}
	return uses, nil
}

// checkUses refuses images whose writers cannot be held back. The copy of a raw device shows an instant of its own. It
// can be the common instant only if no other image changes.
func (e *engine) checkUses(copies []dataCopy, uses []freeze.Use) error {
	raw := 0
	for i, c := range copies {
		if !uses[i].Raw {
			continue
		}
		raw++
		handle := c.volume.record.Load().Handle
		if !c.shares() {
			return backends.Errorf(backends.InUse,
				"volume %s is in use on node %q as a raw device, which cannot be brought to rest: "+
					"stop what uses it, or keep it in a pool on xfs or btrfs", handle, e.node)
		}
		if raw > 1 {
			return backends.Errorf(backends.InUse,
				"volume %s is in use on node %q as a raw device, and so is another of the group: "+
					"stop what uses one of them, or take the snapshots one by one", handle, e.node)
		}
	}
	return nil
}

// copyFrozen copies while the filesystems on the images are frozen. Meanwhile it writes only the copies. It does not
// log either, because the log may be on one of the filesystems.
func (e *engine) copyFrozen(ctx context.Context, copies []dataCopy, uses []freeze.Use) error {
	var filesystems []freeze.Filesystem
	var resting []*volume
	for i, use := range uses {
		if use.Raw { // Freezing flushes all other images.
			if err := use.Flush(ctx); err != nil {
				return err
			}
		}
		if len(use.Filesystems) > 0 {
			filesystems = append(filesystems, use.Filesystems...)
			resting = append(resting, copies[i].volume)
		}
	}
	if err := e.checkNotOurs(filesystems); err != nil {
		return err
	}
	if err := e.thawFirst(ctx, resting); err != nil {
		return err
	}
	if err := e.noteFrozen(resting); err != nil {
		return err
	}
	err := freeze.During(ctx, filesystems, e.freezeLimit, func(ctx context.Context) error {
		for _, c := range copies {
			e.copies(ctx)
			if err := c.run(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, freeze.ErrLimit) {
		err = backends.Errorf(backends.InUse, "the copy took longer than the %v for which a filesystem may be kept frozen: "+
			"stop what uses it, raise freezeLimit, or keep the volume in a pool on xfs or btrfs: %w", e.freezeLimit, err)
	}
	if errors.Is(err, freeze.ErrStillFrozen) { // The notes stay: thawing is retried.
		for _, v := range resting {
			v.frozen.Store(true)
		}
		return err
	}
	return errors.Join(err, clearFrozen(resting))
}

// checkNotOurs refuses to freeze a filesystem that the backend itself writes to. It uses the devices that were found
// when the pools were opened. So a pool that hangs stops no copy elsewhere, and is not mistaken for being elsewhere.
// Kinds: InUse.
func (e *engine) checkNotOurs(filesystems []freeze.Filesystem) error {
	if len(filesystems) == 0 {
		return nil
	}
	home, err := freeze.Device(e.dataDir)
	if err != nil {
		return err
	}
	places := map[uint64]string{home: e.dataDir}
	for _, p := range e.served() {
		if p.device == nil {
			return backends.Errorf(backends.InUse,
				"it is not known on which filesystem pool %q is, so that none can be frozen: stop what uses the volume", p.name)
		}
		places[*p.device] = p.path
	}
	for _, f := range filesystems {
		if path, ours := places[f.Device]; ours {
			return backends.Errorf(backends.InUse,
				"%s is on the volume that would have to be frozen: keep pools and data directory elsewhere", path)
		}
	}
	return nil
}

// noteFrozen notes which volumes are about to be frozen, in case the process is killed. If it fails, it removes only
// its own notes: the note of another volume may be the only sign that the volume is frozen.
func (e *engine) noteFrozen(volumes []*volume) error {
	for i, v := range volumes {
		if err := frozenNote.set(v.dir, e.boot); err != nil {
			return errors.Join(err, clearFrozen(volumes[:i]))
		}
	}
	return nil
}

func clearFrozen(volumes []*volume) error {
	var errs []error
	for _, v := range volumes {
		errs = append(errs, v.clear(frozenNote))
	}
	return errors.Join(errs...)
}
