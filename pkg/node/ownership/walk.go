package ownership

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/stowage-csi/stowage/pkg/backends"
)

const (
	// batch is how many names of a directory are in memory at a time for each worker.
	batch = 512
	// mostHeld is about how many directories all workers together hold open, each within the other, and leastHeld how many
	// each may. What lies deeper is worked on with two descriptors.
	mostHeld, leastHeld = 512, 16
	// maxDepth bounds how many directories may lie within each other: each takes some memory.
	maxDepth = 10_000
)

// walker is one walk.
type walker struct {
	want      wanted
	exclusive bool // as Request.Exclusive
	workers   *errgroup.Group
	holds     int // how many directories within each other a worker holds open

	right, changed, denied atomic.Int64 // entries, by what became of them
}

// walk works on everything below the root and then on the root.
func (w *walker) walk(ctx context.Context, root *os.File, workers int) error {
	if workers <= 0 {
		workers = 2 * runtime.GOMAXPROCS(0)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	w.holds = max(leastHeld, mostHeld/workers)
	w.workers = group
	group.Go(func() error { return w.list(ctx, hold(root, false), 0) })
	if err := group.Wait(); err != nil {
		return err
	}
	return w.settle(int(root.Fd()))
}

func (w *walker) result() Result {
	changed, denied := w.changed.Load(), w.denied.Load()
	return Result{Entries: w.right.Load() + changed + denied, Changed: changed, Denied: denied}
}

// list works on what is in a directory, piece by piece, and lets go of the directory.
func (w *walker) list(ctx context.Context, dir *held, depth int) error {
	if depth >= w.holds {
		return w.walkDeep(ctx, dir, depth)
	}
	defer dir.release()
	for {
		names, err := dir.Readdirnames(batch)
		if len(names) > 0 {
			if err := w.share(ctx, dir, names, depth); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !changedMeanwhile(err):
			return err
		case err != nil:
			return nil
		}
	}
}

func tooDeep() error {
	return backends.Errorf(backends.Invalid, "directories lie within each other more than %d deep", maxDepth)
}

// share hands a piece to a worker that is free, and works on it here when none is: so nobody waits for
// another, and no more is open or in memory than the workers can hold.
func (w *walker) share(ctx context.Context, dir *held, names []string, depth int) error {
	dir.retain()
	if w.workers.TryGo(func() error { return w.all(ctx, dir, names, depth) }) {
		return nil
	}
	return w.all(ctx, dir, names, depth)
}

// all works on some entries of a directory, and lets go of the directory.
func (w *walker) all(ctx context.Context, dir *held, names []string, depth int) error {
	defer dir.release()
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := w.entry(ctx, dir, name, depth); err != nil && !changedMeanwhile(err) {
			return err
		}
	}
	return nil
}

// held is a directory that several workers use, closed when the last of them is done with it.
type held struct {
	*os.File
	users atomic.Int32
	owned bool
}

func hold(dir *os.File, owned bool) *held {
	h := &held{File: dir, owned: owned}
	h.users.Store(1)
	return h
}

func (h *held) retain() { h.users.Add(1) }

func (h *held) release() {
	if h.users.Add(-1) == 0 && h.owned {
		_ = h.Close() // a directory has nothing to write back
	}
}
