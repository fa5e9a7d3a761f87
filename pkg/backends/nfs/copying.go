package nfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/filecopy"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// copying is the copy of one directory into one draft.
type copying struct {
	*making
	from     *origin
	draft    string        // from the share's root
	since    tree.Instant  // the instant of the copy; zero for none
	rest     time.Duration // how long the source must have been unchanged before
	progress *tree.Progress
	begun    bool // whether copying has begun
}

// reserve is the maximum space that copies leave free on a share; on a small share they leave a twentieth.
const reserve = 1 << 30

func (c *copying) run(ctx context.Context) error {
	src, err := safepath.OpenBeneath(c.share.Dir(), c.from.folder)
	if err != nil {
		return backends.Errorf(backends.Unavailable, "the data of the source cannot be reached: %w", err)
	}
	defer closeQuietly(src)
	dst, err := openDir(c.share, c.draft)
	if err != nil {
		return err
	}
	defer closeQuietly(dst)
	if err := c.share.Files().Mkdir(c.draft+linksSuffix, 0o700); err != nil {
		return err
	}
	links, err := openDir(c.share, c.draft+linksSuffix)
	if err != nil {
		return err
	}
	defer closeQuietly(links)
	if err := c.replicate(ctx, dst, src, links); err != nil {
		return err
	}
	return removeIn(ctx, c.share, share.Staging, path.Base(c.draft)+linksSuffix)
}

// explained replaces a failure by its cause, if the source was written to or deleted.
func (c *copying) explained(err error, after time.Duration) error {
	if gone := c.from.intact(c.making); backends.Is(gone, backends.NotFound) {
		return gone
	}
	if !errors.Is(err, tree.ErrChanged) {
		return err
	}
	if c.begun {
		c.restless.disturbed(c.from.id, after)
	}
	return c.restless.refusal(c.from, err)
}

// replicate copies the source if it fits. It stops as soon as the copy turns out to be of no single instant, or takes
// the space that others need, and not only after everything is copied.
func (c *copying) replicate(ctx context.Context, dst, src, links *os.File) error {
	found, err := tree.Look(ctx, src, c.since.Earlier(c.rest))
	if err != nil {
		return err
	}
	if err := c.fits(found.Bytes, links); err != nil {
		return err
	}
	c.begun = true
	ctx, stop := every(ctx, c.copies.pace.look, func() error {
		if err := c.clockKept(links); err != nil {
			return err
		}
		if !c.since.IsZero() {
			if err := tree.Unchanged(src, found.Recent, c.since); err != nil {
				return err
			}
		}
		return c.spare()
	})
	defer stop()
	err = because(ctx, tree.Replicate(ctx, dst, src, tree.Replication{
		Workers: copyWorkers, Links: links, Lenient: true, Since: c.since, Ahead: found.Ahead, Lag: c.share.Lag(),
		Direct: c.share.Direct(), Progress: c.progress, Before: c.copies.entry,
	}))
	if err == nil {
		err = c.clockKept(links)
	}
	return err
}

// clockKept fails if the server's clock is before the instant of the copy. The clock was then set back, and new files
// look as if they existed before. Kinds: Unavailable.
func (c *copying) clockKept(dir *os.File) error {
	if c.since.IsZero() {
		return nil
	}
	now, err := serverTime(dir)
	if err != nil || unix.TimespecToNsec(now) >= unix.TimespecToNsec(c.since.At) {
		return err
	}
	return backends.Errorf(backends.Unavailable,
		"the clock of %s was set back by %v or more while the data was copied, so that nobody can tell what was written "+
			"meanwhile: ask again",
		c.share.Address, time.Duration(unix.TimespecToNsec(c.since.At)-unix.TimespecToNsec(now)).Round(time.Second))
}

// spare fails if less than the reserve is free. Kinds: Exhausted.
func (c *copying) spare() error {
	size, free, err := c.share.Space()
	if left := min(size/20, reserve); err == nil && free < left {
		err = backends.Errorf(backends.Exhausted,
			"%s has %d bytes free, and copies leave %d to others: free space there, or make the share larger", c.share.Address,
			free, left)
	}
	return err
}

// fits fails if the share has no room for the given number of bytes, in addition to those that the other copies take.
// Kinds: Exhausted.
func (c *copying) fits(bytes int64, links *os.File) error {
	others := c.copies.plan(c.share, c.progress, bytes)
	if err := c.spare(); err != nil {
		return err
	}
	size, free, err := c.share.Space()
	if err != nil || bytes+others+min(size/20, reserve) <= free {
		return err
	}
	// Files that share their blocks take none. Testing that is a write, so it is only done if it matters.
	shared, err := filecopy.CanClone(fmt.Sprintf("/proc/self/fd/%d", links.Fd()))
	if err != nil || shared {
		return err
	}
	return backends.Errorf(backends.Exhausted,
		"the copy takes %d bytes, and %s has %d free, of which other copies take %d: free space there, or make the share "+
			"larger", bytes, c.share.Address, free, others)
}
