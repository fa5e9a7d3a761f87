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
	// batch is how many names of a directory each worker has in memory at a time.
	batch = 512
	// mostHeld is approximately how many nested directories all workers together hold open, and leastHeld how many each
	// worker may hold open at least. Deeper directories are processed with two descriptors.
	mostHeld, leastHeld = 512, 16
	// maxDepth bounds the nesting of directories: each takes some memory.
	maxDepth = 10_000
)

// walker is one walk.
type walker struct {
	want      wanted
	exclusive bool // as Request.Exclusive
	isBtrfs   bool // of the volume
	workers   *errgroup.Group
	holds     int // how many nested directories a worker holds open

	right, changed, denied atomic.Int64 // entries, by outcome
}

// walk processes everything below the root and then the root.
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

// list processes the entries of a directory in batches, and releases the directory.
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

// share hands a batch to a free worker, or processes it in this goroutine if none is free. So no worker waits for
// another, and the number of workers bounds open directories and memory.
func (w *walker) share(ctx context.Context, dir *held, names []string, depth int) error {
	dir.retain()
	if w.workers.TryGo(func() error { return w.all(ctx, dir, names, depth) }) {
		return nil
	}
	return w.all(ctx, dir, names, depth)
}

// all processes some entries of a directory, and releases the directory.
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

// held is a directory that several workers use. The last release closes it.
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
