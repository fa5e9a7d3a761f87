package adversary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
)

// begin runs a fault in the background, after the current one.
func (w *world) begin(f Fault) {
	w.faults.Go(func() {
		if f.Late {
			w.early.Wait()
		}
		<-time.After(f.After)
		w.faulting.Lock()
		defer w.faulting.Unlock()
		if w.calm.Load() || w.failed() {
			return
		}
		module, ok := w.modules()[f.Kind]
		if !ok {
			w.blame("there is no fault %q", f.Kind)
			return
		}
		w.note("FAULT %s on %d", f.Kind, f.On)
		w.active.Store(f.Kind)
		err := w.undergo(f, module)
		w.active.Store("")
		w.note("FAULT %s ends: %v", f.Kind, err)
	})
}

var (
	// errNotNow says that a fault has nothing to act on at the moment, or may not act on it.
	errNotNow = errors.New("it cannot be now")
	// errBlamed says that the driver was blamed for it already.
	errBlamed = errors.New("it is a violation")
)

// notNow says for some errors that the fault cannot be now.
func notNow(err error, expected ...error) error {
	if slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) }) {
		return errors.Join(errNotNow, err)
	}
	return err
}

// undergo begins a fault, lets it last, and ends it. Only a fault that took effect counts. One that cannot be now is
// counted apart, and excuses no failure if it changed nothing: then it has no end.
func (w *world) undergo(f Fault, begin module) error {
	before := w.disturbed.Load()
	w.strike(f)
	if f.Kind == "opener" {
		w.openings.begin()
		defer w.openings.end()
	} else {
		w.disturbed.Store(true) // while it begins, too
	}
	end, err := begin(f)
	w.counts(f, err)
	w.obeys(f, "begin", err)
	switch {
	case err == nil:
		w.lasts(f.For)
	case end == nil && errors.Is(err, errNotNow):
		w.disturbed.Store(before)
	}
	if end != nil {
		err = end()
		w.obeys(f, "end", err)
	}
	return err
}

// counts counts a fault that took effect, or that cannot be now.
func (w *world) counts(f Fault, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, errNotNow):
		w.tally.NotNow[f.Kind]++
	case err == nil:
		w.tally.Faults[f.Kind]++
	}
}

// obeys blames this test, and not the driver, for a fault that does not begin or end as it is told.
func (w *world) obeys(f Fault, what string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, errBlamed), errors.Is(err, errNotNow):
		w.note("FAULT %s does not %s: %v", f.Kind, what, err)
	default:
		w.blame("the test's own faults do as they are told: %s on %d does not %s: %v", f.Kind, f.On, what, err)
	}
}

// lasts waits for a time, but ends at a violation: waiting longer would find nothing new.
func (w *world) lasts(d time.Duration) {
	for end := time.Now().Add(d); !w.failed() && time.Now().Before(end); {
		<-time.After(min(time.Until(end), 50*time.Millisecond))
	}
}

// onlyFull reports whether there is a fault, and it is full storage, or that the node's own records cannot be written.
func (w *world) onlyFull() bool {
	kind, _ := w.active.Load().(string)
	return strings.HasPrefix(kind, "full") || kind == "fixed-state"
}

// volumesFull reports whether the only fault is full storage for volumes: the driver's own directory has room.
func (w *world) volumesFull() bool {
	kind, _ := w.active.Load().(string)
	return kind == "full" || kind == "full-start"
}

// module begins a fault and returns the function that ends it, which is needed after some errors too.
type module func(f Fault) (end func() error, err error)

// modules returns the faults by their kinds.
func (w *world) modules() map[string]module {
	return map[string]module{
		"kill":        func(Fault) (func() error, error) { return nil, w.again(Proper, nothing) },
		"stop":        w.stop,
		"full":        w.full,
		"full-start":  w.fullAtStart,
		"full-state":  func(f Fault) (func() error, error) { f.On = len(w.disks) - 1; return w.full(f) },
		"fixed-state": func(f Fault) (func() error, error) { f.On = len(w.disks) - 1; return w.readOnly(f) },
		"read-only":   w.readOnly,
		"eio":         func(f Fault) (func() error, error) { return w.eio(f, false) },
		"eio-start":   func(f Fault) (func() error, error) { return w.eio(f, true) },
		"missing":     func(Fault) (func() error, error) { return w.variant(Missing) },
		"renamed":     func(Fault) (func() error, error) { return w.variant(Renamed) },
		"added":       func(Fault) (func() error, error) { return w.variant(Added) },
		"empty":       func(Fault) (func() error, error) { return w.variant(Empty) },
		"newer":       func(f Fault) (func() error, error) { return w.record(f, newer) },
		"loop":        func(f Fault) (func() error, error) { return w.record(f, selfLink) },
		"few-files":   w.fewFiles,
		"no-files":    w.noFiles,
		"lost":        w.lost,
		"unplaced":    w.unplaced,
		"opener":      w.opener,
		"clock":       w.clock,
		"denied":      w.denied,
		"cloud":       w.bad,
		"unsteady":    w.unsteady,
		"silent":      w.silent,
	}
}

func nothing() error { return nil }

// again restarts the driver. Healthy storage is served: the driver must start even if some of its storage is broken.
func (w *world) again(v Variant, between func() error) error {
	var prepared error
	err := w.restart(w.setup.Config(w, v), func() error {
		prepared = between()
		return nil
	})
	if err != nil {
		kind := w.active.Load()
		w.blame("what works is served: with the fault %s the driver does not start: %v", kind, err)
		err = errors.Join(errBlamed, err)
	}
	return errors.Join(err, prepared)
}

// stop stops the controller at any point, lets another take over, and lets the first continue.
func (w *world) stop(Fault) (func() error, error) {
	w.alive.Lock()
	old := w.control
	if err := old.signal(syscall.SIGSTOP); err != nil {
		w.alive.Unlock()
		return nil, err
	}
	w.pods++
	next, err := w.start(controller)
	if err == nil {
		w.control = next
		close(w.over)
		w.over = make(chan struct{})
	}
	w.alive.Unlock()
	return func() error {
		err := old.signal(syscall.SIGCONT)
		<-time.After(300 * time.Millisecond)
		old.kill()
		w.useAll()
		return err
	}, err
}

func (w *world) full(f Fault) (func() error, error) {
	d := w.disks[f.On]
	return d.lift, d.fill()
}

func (w *world) fullAtStart(f Fault) (func() error, error) {
	d := w.disks[f.On]
	mend := func() error {
		if err := d.lift(); err != nil || w.control != nil {
			return err
		}
		return w.again(Proper, nothing) // It did not start.
	}
	return mend, w.again(Proper, d.fill)
}

func (w *world) readOnly(f Fault) (func() error, error) {
	d := w.disks[f.On]
	if err := d.protect(); err != nil {
		return nil, notNow(err, unix.EBUSY) // A file is open for writing.
	}
	return d.lift, nil
}

// eio makes a filesystem fail under a running driver, or under one that starts, until it is mounted again.
func (w *world) eio(f Fault, atStart bool) (func() error, error) {
	d := w.disks[f.On]
	mend := func() error {
		return w.again(Proper, func() error { return errors.Join(d.unmount(), d.mount()) })
	}
	if atStart {
		return mend, w.again(Proper, d.fail)
	}
	return mend, d.fail()
}

func (w *world) variant(v Variant) (func() error, error) {
	return func() error { return w.again(Proper, nothing) }, w.again(v, nothing)
}

// fewFiles starts the driver with a low limit of open files. It may refuse to start: that is no pool's fault.
func (w *world) fewFiles(f Fault) (func() error, error) {
	w.files = 8 + f.Draw%24
	if err := w.restart(w.setup.Config(w, Proper), nothing); err != nil {
		w.note("with %d files it does not start: %v", w.files, err)
	}
	w.files = 0
	return func() error { return w.again(Proper, nothing) }, nil
}

// noFiles lets the running process open only a few more files than it has open, as a leak elsewhere in it would.
func (w *world) noFiles(f Fault) (func() error, error) {
	w.alive.RLock()
	defer w.alive.RUnlock()
	pid := w.control.cmd.Process.Pid
	var usual unix.Rlimit
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err == nil {
		err = unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &usual)
	}
	if err != nil {
		return nil, err
	}
	few := unix.Rlimit{Cur: uint64(len(open)) + f.Draw%6, Max: usual.Max}
	return func() error { return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &usual, nil) },
		unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil)
}

// lost makes a server show a share without the driver's directory, as if its disk was not mounted.
func (w *world) lost(f Fault) (func() error, error) {
	root := w.disks[f.On%(len(w.disks)-1)].dir
	home, away := filepath.Join(root, ".stowage"), filepath.Join(root, filler+"home")
	end := func() error {
		return w.again(Proper, func() error {
			if _, err := os.Lstat(home); err == nil {
				w.blame("what is away is not made anew: there is %s, whose place another took that comes back", home)
			}
			return os.Rename(away, home)
		})
	}
	return end, w.again(Proper, func() error { return os.Rename(home, away) })
}

// record changes one of the driver's records while it does not run.
func (w *world) record(f Fault, damage func(path string, data []byte) error) (func() error, error) {
	var path string
	var data []byte
	err := w.again(Proper, func() (err error) {
		found := slices.DeleteFunc(w.tree(), func(path string) bool { return !isRecord(path) })
		if len(found) == 0 {
			return fmt.Errorf("there is no record: %w", errNotNow)
		}
		path = found[f.Draw%uint64(len(found))]
		if data, err = os.ReadFile(path); err == nil {
			err = damage(path, data)
		}
		return err
	})
	if err == nil {
		w.served()
	}
	return func() error {
		if path == "" {
			return w.again(Proper, nothing)
		}
		// The driver may have moved away the item of the record; then it is where an administrator looks for it.
		return w.again(Proper, func() error {
			return notNow(errors.Join(os.RemoveAll(path), os.WriteFile(path, data, 0o600)), fs.ErrNotExist)
		})
	}, err
}

// served checks that each class has room, even if a single record is broken.
func (w *world) served() {
	ctx, cancel := context.WithTimeout(w.life, attempt)
	defer cancel()
	for i, class := range w.setup.Classes {
		response, err := csi.NewControllerClient(w.control.connection()).GetCapacity(ctx, &csi.GetCapacityRequest{
			Parameters: class.Parameters, VolumeCapabilities: []*csi.VolumeCapability{capability(false)},
		})
		if err != nil || response.GetAvailableCapacity() == 0 {
			w.blame("what works is served: one record cannot be used, and class %d has room for %d bytes: %v", i,
				response.GetAvailableCapacity(), err)
		}
	}
}

// isRecord reports whether a file is the record of a volume or snapshot.
func isRecord(path string) bool {
	return strings.HasSuffix(path, "/record.json") && !strings.Contains(path, "/trash/") ||
		strings.HasSuffix(path, ".json") && slices.Contains([]string{"volumes", "snapshots", "making"},
			filepath.Base(filepath.Dir(path)))
}

func newer(path string, data []byte) error {
	changed := bytes.Replace(data, []byte(`"version": 1`), []byte(`"version": 99`), 1)
	changed = bytes.Replace(changed, []byte(`"version":1`), []byte(`"version":99`), 1)
	if bytes.Equal(changed, data) {
		return fmt.Errorf("%s has no version: %w", path, errNotNow)
	}
	return os.WriteFile(path, changed, 0o600)
}

// selfLink makes the record unreadable with ELOOP.
func selfLink(path string, _ []byte) error {
	return errors.Join(os.Remove(path), os.Symlink(filepath.Base(path), path))
}

// opener opens each loop device of a volume repeatedly, as udev and tools that list devices do, and holds a shared lock
// on a new one for some milliseconds.
func (w *world) opener(f Fault) (func() error, error) {
	ctx, stop := context.WithTimeout(w.life, f.For)
	var names atomic.Value
	names.Store([]string{})
	var opening sync.WaitGroup
	defer opening.Wait() // No device is open any more.
	opening.Go(func() {
		for ctx.Err() == nil {
			list, _ := names.Load().([]string)
			for _, name := range list {
				if file, err := os.Open("/dev/" + name); err == nil {
					_ = file.Close() // it was only read
				}
				<-time.After(200 * time.Microsecond)
			}
			<-time.After(200 * time.Microsecond)
		}
	})
	defer stop()
	for seen := map[string]string{}; ctx.Err() == nil && !w.failed(); <-time.After(5 * time.Millisecond) {
		for loop, backing := range w.loops() {
			if seen[loop] == backing {
				continue
			}
			seen[loop] = backing
			names.Store(slices.Collect(maps.Keys(seen)))
			hold(ctx, "/dev/"+loop)
		}
	}
	if opened, _ := names.Load().([]string); len(opened) == 0 {
		return nil, fmt.Errorf("there is no loop device: %w", errNotNow)
	}
	return nil, nil
}

// hold takes a shared lock on a device for some milliseconds.
func hold(ctx context.Context, device string) {
	file, err := os.Open(device)
	if err != nil {
		return
	}
	if ctx.Err() == nil && unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil {
		<-time.After(5 * time.Millisecond)
	}
	_ = file.Close() // it was only read
}
