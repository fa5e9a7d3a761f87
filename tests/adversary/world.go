package adversary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/tests/orchestrator"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

// world is a driver with its storage, and everything that is known about it.
type world struct {
	setup     Setup
	workspace *orchestrator.Workspace
	disks     []*disk
	server    *nfsd.Server    // nil for none
	cloud     *cloud          // nil for none
	life      context.Context // of a schedule
	serials   serial
	names     atomic.Uint64 // the number of names that were used
	shots     atomic.Int64  // the number of snapshots that were acknowledged in the schedule
	baseline  []string      // the contents of the storage while there is no volume

	drivers // the live processes

	known           *regexp.Regexp // violations that are ignored; nil for none
	limits          limits
	calm, disturbed atomic.Bool
	exact           atomic.Bool // nothing that happens now gives a reason to refuse a call
	openings        openings
	active          atomic.Value // the kind of the current fault
	faulting        sync.Mutex   // one fault at a time
	faults          sync.WaitGroup
	early           sync.WaitGroup // tracks that have not come to a Cycle yet

	mu      sync.Mutex
	ledger  ledger
	silence silence         // the last one
	struck  map[int]bool    // disks on which users' own writes may have failed in this schedule, by their numbers
	kept    map[string]bool // directories that volumes have left, or for false may have left
	wrong   []string
	log     []string
	began   time.Time
	tally   *Tally
}

// newWorld creates the storage of a setup and starts a driver over it.
func newWorld(tb testing.TB, s Setup, tally *Tally, known *regexp.Regexp, l limits) (w *world, err error) {
	made := &world{setup: s, tally: tally, known: known, limits: l, life: context.Background(), began: time.Now(),
		ledger: newLedger()}
	w = made
	w.kept = map[string]bool{}
	w.limits = limits{w.lasting(l.calls), w.lasting(l.lists)}
	sweep()
	if w.workspace, err = orchestrator.NewWorkspace(prefix); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // w may be nil.
			w, err = nil, errors.Join(err, made.close())
		}
	}()
	if err := w.makeDisks(); err != nil {
		return nil, err
	}
	if s.Exported {
		if err := w.export(); err != nil {
			return nil, err
		}
	}
	if s.Cloud {
		if w.cloud, err = newCloud(tb, w.workspace.Dir); err != nil {
			return nil, err
		}
	}
	w.world = w
	if err := w.startAll(s.Config(w, Proper)); err != nil {
		return nil, err
	}
	return w, w.settleIn()
}

// lasting scales a time for a world that may be slower.
func (w *world) lasting(d time.Duration) time.Duration {
	return d * time.Duration(max(w.setup.Slower, 1))
}

// settleIn uses each class once, so that the driver has created what it creates only once, and remembers that as the
// baseline.
func (w *world) settleIn() error {
	w.exact.Store(true)
	defer w.exact.Store(false)
	for i := range w.setup.Classes {
		a := newActor(w, i, nil)
		w.calm.Store(true)
		for _, op := range []Op{Create, Snapshot, Use, Leave, Forget, Delete} {
			a.step(Step{Op: op, Class: i, MiB: 8})
		}
	}
	for _, v := range []Variant{Added, Proper} {
		if err := w.restart(w.setup.Config(w, v), nothing); err != nil {
			return err
		}
	}
	if w.failed() {
		return fmt.Errorf("a quiet beginning failed: %s", strings.Join(w.wrong, "; "))
	}
	w.baseline = w.waitForTree(nil, w.limits.lists)
	return nil
}

// close takes everything down.
func (w *world) close() error {
	problems := []error{w.resume()} // A process that waits for a server does not end.
	w.killAll()
	if w.cloud != nil {
		w.cloud.api.Close()
	}
	for _, d := range slices.Backward(w.disks) {
		problems = append(problems, d.lift())
	}
	w.workspace.Thaw()
	problems = append(problems, w.detach(), w.unexport(), w.endServers())
	return errors.Join(append(problems, w.workspace.Remove())...)
}

// detach removes the mounts and loop devices over the filesystems.
func (w *world) detach() error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(w.path("mounts")))
	problems := []error{err}
	for _, m := range slices.Backward(mounts) {
		problems = append(problems, unix.Unmount(m.Mountpoint, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW))
	}
	for _, backing := range w.loops() { // by their files: a number may be another test's by now
		image, _ := strings.CutSuffix(backing, " (deleted)")
		_ = device.Detach(context.Background(), image, 2*time.Minute) // it may be gone with its mount
	}
	w.inKernel() // waits
	return errors.Join(problems...)
}

// path returns a path in the world.
func (w *world) path(parts ...string) string {
	return filepath.Join(append([]string{w.workspace.Dir}, parts...)...)
}

// blame notes a violation, which ends the schedule, unless it is known.
func (w *world) blame(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); w.known != nil && w.known.MatchString(text) {
		w.note("KNOWN %s", text)
		return
	}
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

// name returns a unique name.
func (w *world) name(what string) string { return fmt.Sprintf("%s-%d", what, w.names.Add(1)) }

// tree returns the driver's files in the storage.
func (w *world) tree() (list []string) {
	if w.cloud != nil {
		list = w.cloud.tree()
	}
	var roots []string
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

// waitForTree waits until the storage holds no more than a list, and returns the surplus: everything if there is no
// list.
func (w *world) waitForTree(want []string, wait time.Duration) (more []string) {
	if w.known != nil {
		wait = 300 * time.Millisecond // It may be known, and not go.
	}
	for end := time.Now().Add(wait); ; <-time.After(20 * time.Millisecond) {
		more = slices.DeleteFunc(w.tree(), func(path string) bool { return slices.Contains(want, path) || configured(path) })
		if len(more) == 0 && want != nil || time.Now().After(end) || want == nil && !slices.ContainsFunc(more, passing) {
			return more
		}
	}
}

// configured reports whether a file is the driver's note of its configuration, or of itself.
func configured(path string) bool {
	folder := filepath.Base(filepath.Dir(path))
	return folder == "known" || folder == "controllers" || strings.Contains(path, "/data/pools") ||
		strings.HasSuffix(path, "/shares.json") || strings.HasSuffix(path, "/data/released")
}

// passing reports whether an entry is about to be removed.
func passing(path string) bool { return strings.Contains(path, "/trash/") }
