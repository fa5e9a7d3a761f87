package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/tests/orchestrator"
)

// errHalted stops a worker's lifecycle at its current step, once the last kill has happened.
var errHalted = errors.New("halted")

// worker takes volumes through their lives and knows the expected state.
type worker struct {
	id     int
	run    *run
	rng    *rand.Rand
	client *orchestrator.Client

	made       int  // the number of names it has used
	finishing  bool // it continues in spite of the halt
	volumes    []*volume
	snapshots  []*snapshot
	lifecycles int
	history    history

	mu   sync.Mutex
	step string // its current step; empty if idle
}

// volume is an acknowledged volume with its expected content.
type volume struct {
	*orchestrator.Volume
	kind      kind
	staged    bool
	published bool
	data      contents
}

// snapshot is an acknowledged snapshot with its expected content.
type snapshot struct {
	*orchestrator.Snapshot
	kind kind
	data contents
}

// work takes one volume after another through its life until the halt.
func (w *worker) work() {
	for {
		err := w.lifecycle()
		switch {
		case err == nil:
			w.lifecycles++
		case errors.Is(err, errHalted):
			return
		default:
			w.run.violated(w, err)
			return
		}
	}
}

// do makes one step, unless there was a halt.
func (w *worker) do(what, name string, f func(ctx context.Context) error) error {
	select {
	case <-w.run.halt:
		if !w.finishing {
			return errHalted
		}
	case <-w.run.life.Done():
		return errHalted
	default:
	}
	w.enter(what + " " + name)
	defer w.enter("")
	start := time.Now()
	err := f(w.run.life)
	if err != nil && w.run.life.Err() != nil {
		return errHalted // Another worker's violation has ended the run.
	}
	took := time.Since(start).Round(time.Millisecond)
	if err != nil {
		w.history.add("worker %d: %s %s: FAILED after %s: %v", w.id, what, name, took, err)
		return fmt.Errorf("worker %d: %s %s: %w", w.id, what, name, err)
	}
	w.history.add("worker %d: %s %s: done after %s", w.id, what, name, took)
	w.run.tally.step(what)
	return nil
}

// call makes a repeatable step, and sometimes repeats it, as an orchestrator does that was itself restarted.
func (w *worker) call(what, name string, f func(ctx context.Context) error) error {
	if err := w.do(what, name, f); err != nil || !w.chance(15) {
		return err
	}
	err := w.do(what+" again", name, f)
	if errors.Is(err, errHalted) {
		return nil // The first call has succeeded.
	}
	return err
}

func (w *worker) enter(step string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.step = step
}

// under returns the worker's current step.
func (w *worker) under() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.step
}

// chance returns true with the given probability in percent.
func (w *worker) chance(percent int) bool { return w.rng.IntN(100) < percent }

// name returns a new name.
func (w *worker) name(what string) string {
	w.made++
	return fmt.Sprintf("w%d-%d-%s", w.id, w.made, what)
}

// observe records an attempt that did not end its call.
func (w *worker) observe(a orchestrator.Attempt) {
	w.run.tally.attempt(a)
	method, took := path.Base(a.Method), a.Took.Round(time.Millisecond)
	switch {
	case a.Broken:
		w.history.add("worker %d: %s had no answer after %s (%s)", w.id, method, took, a.Code)
	case a.Err != nil:
		w.history.add("worker %d: %s was answered after %s: %v", w.id, method, took, a.Err)
	}
}

// ids returns the IDs of the existing volumes and snapshots.
func (w *worker) ids() (volumes, snapshots []string) {
	for _, v := range w.volumes {
		volumes = append(volumes, v.ID)
	}
	for _, s := range w.snapshots {
		snapshots = append(snapshots, s.ID)
	}
	return volumes, snapshots
}
