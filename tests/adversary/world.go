package adversary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stowage-csi/stowage/tests/orchestrator"
)

// world is a driver with its storage, and all that is known about it.
type world struct {
	setup     Setup
	workspace *orchestrator.Workspace
	disks     []*disk
	life      context.Context // of a schedule
	serials   serial
	names     atomic.Uint64 // how many names have been given
	baseline  []string      // what the storage holds while there is no volume

	drivers // who is alive

	calm, disturbed atomic.Bool
	active          atomic.Value // the kind of fault that there is
	faulting        sync.Mutex   // one fault at a time
	faults          sync.WaitGroup

	mu     sync.Mutex
	ledger ledger
	wrong  []string
	log    []string
	began  time.Time
	tally  *Tally
}

// newWorld makes the storage of a setup and starts a driver over it.
func newWorld(s Setup, tally *Tally) (w *world, err error) {
	w = &world{setup: s, tally: tally, life: context.Background(), began: time.Now(), ledger: newLedger()}
	if w.workspace, err = orchestrator.NewWorkspace("stowage-adversary"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if err := w.makeDisks(); err != nil {
		return nil, err
	}
	w.drivers.world = w
	if err := w.startAll(s.Config(w, Proper)); err != nil {
		return nil, err
	}
	return w, w.settleIn()
}

// settleIn uses each class once, so that what a driver makes once is there, and remembers what that is.
func (w *world) settleIn() error {
	for i := range w.setup.Classes {
		a := newActor(w, i, nil)
		for _, op := range []Op{Create, Delete} {
			a.step(Step{Op: op, Class: i, MiB: 8})
		}
	}
	if w.failed() {
		return fmt.Errorf("a quiet beginning failed: %s", strings.Join(w.wrong, "; "))
	}
	w.baseline = w.waitForTree(nil)
	return nil
}

// close takes all down.
func (w *world) close() error {
	w.killAll()
	var problems []error
	for _, d := range slices.Backward(w.disks) {
		problems = append(problems, d.lift())
	}
	w.workspace.Thaw()
	return errors.Join(append(problems, w.workspace.Remove())...)
}

// path is a place in the world.
func (w *world) path(parts ...string) string {
	return filepath.Join(append([]string{w.workspace.Dir}, parts...)...)
}

// blame notes a violation, which ends the schedule.
func (w *world) blame(format string, args ...any) {
	w.note("VIOLATION "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wrong) > 0
}

// note adds a line to the history.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf("%8.3f ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// name is a name that was never given before.
func (w *world) name(what string) string { return fmt.Sprintf("%s-%d", what, w.names.Add(1)) }

// tree is what the storage holds, as far as it is files of the driver's.
func (w *world) tree() (list []string) {
	roots := []string{w.workspace.Data()}
	for _, d := range w.disks {
		roots = append(roots, d.dir)
	}
	for _, root := range roots {
		_ = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.Name() == "lost+found" || strings.HasPrefix(entry.Name(), filler) {
				return nil //nolint:nilerr // it has just gone
			}
			list = append(list, path)
			return nil
		})
	}
	return list
}

// waitForTree waits until the storage holds no more than a list, and returns what it holds more: all where there is no list.
func (w *world) waitForTree(want []string) (more []string) {
	for end := time.Now().Add(5 * time.Second); ; <-time.After(20 * time.Millisecond) {
		more = slices.DeleteFunc(w.tree(), func(path string) bool { return slices.Contains(want, path) })
		if len(more) == 0 && want != nil || time.Now().After(end) || want == nil && !slices.ContainsFunc(more, passing) {
			return more
		}
	}
}

// passing tells whether something is about to be removed.
func passing(path string) bool { return strings.Contains(path, "/trash/") }
