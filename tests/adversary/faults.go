package adversary

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"time"

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
