package local

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// waste is an item in trash/ that is to be removed.
type waste struct {
	path string
	size int64 // given back to the ledger when it is gone
	told bool  // whether a failed removal was logged
}

// janitor removes a pool's trash in the background, one item at a time, so that a deletion takes no longer than a
// rename, however much there is to remove.
type janitor struct {
	log    *slog.Logger
	ledger *ledger
	ctx    context.Context // the lifetime of the background work, which belongs to no request
	stop   context.CancelFunc

	group background.Group

	mu     sync.Mutex
	queue  []waste
	failed []waste // items that could not be removed, to be retried
	works  bool
}

func newJanitor(log *slog.Logger, l *ledger) *janitor {
	ctx, stop := context.WithCancel(context.Background())
	return &janitor{log: log, ledger: l, ctx: ctx, stop: stop}
}

// add queues an item for removal.
func (j *janitor) add(w waste) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue = append(j.queue, w)
	if !j.works {
		j.works = true
		j.group.Go(fmt.Sprintf("pool %q: the removal of trash", j.ledger.pool), j.work)
	}
}

func (j *janitor) work() {
	for {
		w, ok := j.next()
		if !ok {
			return
		}
		if err := j.remove(w); err == nil {
			j.ledger.give(w.size)
		} else if j.ctx.Err() == nil {
			j.keep(w, err)
		}
	}
}

// remove removes an item and, if that was tried before, the pieces into which tree.Remove has split it.
func (j *janitor) remove(w waste) error {
	if err := tree.Remove(j.ctx, w.path); err != nil || !w.told {
		return err
	}
	entries, err := os.ReadDir(filepath.Dir(w.path))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		number, isPiece := strings.CutPrefix(entry.Name(), filepath.Base(w.path)+".")
		if _, err := strconv.Atoi(number); err != nil || !isPiece {
			continue
		}
		if err := tree.Remove(j.ctx, filepath.Join(filepath.Dir(w.path), entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// keep queues an item that could not be removed for a retry, and logs that once.
func (j *janitor) keep(w waste, err error) {
	if !w.told {
		j.log.Warn("trash could not be removed: its space stays taken, and it is tried again", "path", w.path, "error", err)
	}
	w.told = true
	j.later(w)
}

// later queues an item for the next retry.
func (j *janitor) later(w waste) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed = append(j.failed, w)
}

// again retries all items that could not be removed.
func (j *janitor) again() {
	j.mu.Lock()
	failed := j.failed
	j.failed = nil
	j.mu.Unlock()
	for _, w := range failed {
		j.add(w)
	}
}

func (j *janitor) next() (waste, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.queue) == 0 || j.ctx.Err() != nil {
		j.works = false
		return waste{}, false
	}
	w := j.queue[0]
	j.queue = j.queue[1:]
	return w, true
}

// wait waits until nothing is being removed. Kinds: Busy when a removal is still running at the end of the context.
func (j *janitor) wait(ctx context.Context) error { return j.group.Wait(ctx) }

// close waits for the work to end. After half of the context's time it stops the work, which checks for that between
// two files. Kinds: as of end.
func (j *janitor) close(ctx context.Context) error {
	half, cancel := halfway(ctx)
	defer cancel()
	_ = j.wait(half) // Work that is left then is stopped.
	return j.end(ctx)
}

// end stops the work and waits for its end. Kinds: Busy when it has not ended by the end of the context.
func (j *janitor) end(ctx context.Context) error {
	j.stop()
	return j.wait(ctx)
}
