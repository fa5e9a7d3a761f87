package disks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/dirlock"
	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// Options of an Engine.
type Options struct {
	Config discovery.Config
	// StateDir holds the notes. It must outlive restarts of the node.
	StateDir string
	// LinkDir holds a link to each device, under the volume's name. It is in memory, so that no link survives a reboot.
	LinkDir string
	// LinkPath leads to LinkDir: volumes are reported with paths below it. It must outlive restarts of the node.
	LinkPath string
	// Rescan is how often to look for volumes if no event reports a change.
	Rescan time.Duration
	// FirstPause and LastPause bound the pause before a failed deletion is retried: the first pause, and the longest.
	FirstPause, LastPause time.Duration
	Log                   *slog.Logger
}

// Engine manages the volumes of a node.
type Engine struct {
	options Options
	notes   notes
	locks   []*os.File    // of StateDir and LinkDir
	start   string        // distinguishes this process from an earlier one
	scans   chan struct{} // holds one element while a look is requested
	running sync.WaitGroup
	calls   deadline.Calls // looks that were given up and still run

	mu         sync.Mutex
	life       context.Context // of the operations; nil before Run
	revision   int
	changed    chan struct{} // closed with the next change
	problem    string
	found      []report.Volume
	told       bool // what is wanted is known
	wanted     report.Wanted
	source     report.Source     // the newest state of the NodeStorage
	isNoted    bool              // this process has noted the source
	offers     map[string]string // ids by volume
	heard      map[string]hearing
	looks      int // number of looks that have begun
	foundBy    int // number of the look that filled found
	volumes    map[string]*volumeNote
	operations map[string]*operationNote
	active     map[string]*operation
}

// Open reads the notes. Only one Engine may use a state directory, and only one a directory of links: each of two would
// remove the links of the other's disks.
func Open(o Options) (*Engine, error) {
	n, err := openNotes(o.StateDir)
	if err != nil {
		return nil, err
	}
	lock, err := dirlock.Lock(o.StateDir)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		options: o, notes: n, locks: []*os.File{lock}, start: strconv.FormatInt(time.Now().UnixNano(), 36),
		scans: make(chan struct{}, 1), changed: make(chan struct{}), offers: map[string]string{},
		active: map[string]*operation{}, problem: "the disks were not looked at yet",
	}
	e.source = n.readSource()
	if e.volumes, err = readAll[volumeNote](n, volumesFolder); err == nil {
		e.operations, err = readAll[operationNote](n, operationsFolder)
	}
	if err == nil {
		err = openLinks(o.LinkPath, o.LinkDir)
	}
	if err == nil {
		lock, err = lockLinks(o.LinkDir)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	e.locks = append(e.locks, lock)
	return e, nil
}

// Close ends an Engine that does not Run.
func (e *Engine) Close() (err error) {
	for _, lock := range e.locks {
		err = errors.Join(err, lock.Close())
	}
	return err
}

// Run looks for volumes and carries out deletions until the context ends.
func (e *Engine) Run(ctx context.Context) error {
	defer func() { _ = e.Close() }() // They were only locked.
	defer e.running.Wait()
	ctx, cancel := context.WithCancel(e.calls.With(ctx))
	defer cancel()
	e.mu.Lock()
	e.life = ctx
	e.begin()
	e.mu.Unlock()
	if err := e.unlinkOthers(ctx); err != nil {
		return fmt.Errorf("remove links that lead to other disks: %w", err)
	}
	go e.watch(ctx)
	e.look()
	return e.scan(ctx, e.scanOnce)
}

// watch requests a look after each event, and listens again after a failure.
func (e *Engine) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if err := discovery.Watch(ctx, e.look); err != nil {
			e.options.Log.Error("new disks are seen with a delay", "delay", e.options.Rescan, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(e.options.Rescan):
		}
	}
}

// look requests a look at the disks.
func (e *Engine) look() {
	select {
	case e.scans <- struct{}{}:
	default:
	}
}

// State returns the state once its revision differs from after, or the context ends.
func (e *Engine) State(ctx context.Context, after string) report.State {
	for {
		e.mu.Lock()
		state, changed := e.snapshot(), e.changed
		e.mu.Unlock()
		if state.Revision != after {
			return state
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state
		}
	}
}

// snapshot returns the state. The lock is held.
func (e *Engine) snapshot() report.State {
	s := report.State{Revision: fmt.Sprintf("%s.%d", e.start, e.revision), Problem: e.problem,
		Volumes: slices.Clone(e.found)}
	for i := range s.Volumes {
		e.update(&s.Volumes[i])
	}
	for _, d := range e.wanted.Deletions {
		s.Deletions = append(s.Deletions, e.deletion(d))
	}
	return s
}

// change wakes the callers that wait for a change. The lock is held.
func (e *Engine) change() {
	e.revision++
	close(e.changed)
	e.changed = make(chan struct{})
}

// Want takes the offers and the wanted deletions, unless it knows of a newer state of the NodeStorage. It durably notes
// offered volumes as dirty before it returns. Their state is Offered once a look that began later has found them free.
func (e *Engine) Want(w report.Wanted) error {
	if err := w.Check(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.accept(w.Source); err != nil {
		return err
	}
	w.Source = report.Source{}
	if e.told && reflect.DeepEqual(e.wanted, w) { // The agent repeats it after each change.
		return nil
	}
	for _, o := range w.Offers {
		if err := e.noteOffer(o, w.Deletions); err != nil {
			return err
		}
	}
	for _, d := range w.Deletions {
		if err := e.noteOperation(d); err != nil {
			return err
		}
	}
	e.hear(w)
	e.begin()
	if err := e.notes.prune(e.operations,
		func(id string) bool { return e.isWanted(id) || e.active[id] != nil }); err != nil {
		e.options.Log.Warn("notes of earlier deletions stay", "error", err)
	}
	e.change()
	e.look() // Volumes that are no longer offered can be examined.
	return nil
}

// noteOffer notes that others may write to the volume from now on. The lock is held.
func (e *Engine) noteOffer(o report.Offer, deletions []report.Deletable) error {
	before, note := e.volumes[o.Volume], &volumeNote{Offer: o.ID, Dirty: true}
	switch {
	case before == nil:
		note.Unproven = true
	case before.Offer != o.ID && before.proven() == o.ID: // It was replaced, as by a restore. Its data are still there.
	case before.Offer != o.ID:
		note.Proven, note.Unproven, note.Wiped, note.Left = before.proven(), true, before.Wiped, before.Left
		note.DirtyBefore = before.DirtyBefore || before.Dirty && !before.Unproven
	case before.Dirty || e.isWiped(o.Volume, deletions):
		return nil
	default: // The deletion was withdrawn after all: its object had come late, and is used.
	}
	if err := e.notes.write(volumesFolder, o.Volume, note); err != nil {
		return err
	}
	e.volumes[o.Volume] = note
	return nil
}

// isWiped reports whether one of the deletions is of the volume and complete. The lock is held.
func (e *Engine) isWiped(volume string, deletions []report.Deletable) bool {
	return slices.ContainsFunc(deletions, func(d report.Deletable) bool {
		note := e.operations[d.ID]
		return d.Volume == volume && note != nil && note.Complete
	})
}

// noteOperation notes that a deletion is wanted. A known id must mean the same deletion. The lock is held.
func (e *Engine) noteOperation(d report.Deletable) error {
	if note := e.operations[d.ID]; note != nil {
		if note.Deletable != d {
			return fmt.Errorf("the deletion %s is of volume %s by %q, and was of volume %s by %q: each deletion has an id of "+
				"its own",
				d.ID, d.Volume, d.Method, note.Volume, note.Method)
		}
		return nil
	}
	note := &operationNote{Deletable: d, Noted: time.Now()}
	if v := e.volumes[d.Volume]; v != nil {
		note.Offer = v.Offer
	}
	if err := e.notes.write(operationsFolder, d.ID, note); err != nil {
		return err
	}
	e.operations[d.ID] = note
	return nil
}

func (e *Engine) isWanted(id string) bool {
	return slices.ContainsFunc(e.wanted.Deletions, func(d report.Deletable) bool { return d.ID == id })
}

// history returns what is known about a volume: from before its offer, if no look has proven that. The lock is held.
func (e *Engine) history(name string) discovery.History {
	var h discovery.History
	_, isOffered := e.offers[name]
	h.Taken = isOffered
	if note := e.volumes[name]; note != nil {
		h.Dirty, h.Wiped, h.Left = note.Dirty, note.Wiped, note.Left
		if note.Unproven && e.told {
			h.Unproven, h.Withdrawn, h.Taken, h.Dirty = true, !isOffered, false, note.DirtyBefore
		}
	}
	h.Taken = h.Taken || h.Dirty && !e.told // It may be offered.
	for _, o := range e.active {
		h.Taken = h.Taken || o.note.Volume == name
	}
	return h
}
