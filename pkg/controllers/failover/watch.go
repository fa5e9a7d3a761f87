package failover

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/holds"
	"github.com/stowage-csi/stowage/pkg/machines"
)

// Driver is what is asked about machines.
type Driver interface {
	Driver() string
	Machine(ctx context.Context, query machines.Query) (machines.Machine, error)
}

// Options of the failover of nodes.
type Options struct {
	Driver Driver
	Log    *slog.Logger
	// Lag is how old what the provider says may be, at most.
	Lag time.Duration
}

const (
	period = time.Second      // from one look at the nodes to the next
	missed = 11 * time.Second // a kubelet renews its Lease every ten, unless it is told otherwise
	quiet  = 15 * time.Second
	// settled is how long a node must be silent before a person's taint counts for more than what its kubelet said last.
	settled   = 40 * time.Second
	questions = 256 // that are asked at a time
	lessons   = 64  // of them those that only learn: a node that is silent does not wait for them
	// patience bounds a question, and a proof and what follows from it, so that nothing is done by an answer of long ago.
	patience = 5 * time.Second
)

// Add adds the failover of nodes to what m runs, and returns what answers whether a volume may be detached, also in a
// manager that does not lead.
func Add(m ctrl.Manager, o Options) (func(context.Context, holds.Query) (holds.Hold, error), error) {
	w := newWatcher(o, m.GetClient(), m.GetAPIReader(), m.GetEventRecorder("stowage-failover"))
	if err := w.metrics.register(registry.Registry); err != nil {
		return nil, err
	}
	w.elected = m.Elected()
	for _, o := range []client.Object{&storagev1.CSINode{}, &storagev1.VolumeAttachment{}} {
		if err := m.GetFieldIndexer().IndexField(context.Background(), o, byMachine, w.machinesOf); err != nil {
			return nil, fmt.Errorf("index %T by machine: %w", o, err)
		}
	}
	return w.Hold, m.Add(w)
}

// NeedLeaderElection reports that a watcher also runs in a manager that does not lead.
func (w *watcher) NeedLeaderElection() bool { return false }

func (w *watcher) leads() bool {
	select {
	case <-w.elected:
		return true
	default:
		return false
	}
}

// watcher looks at the nodes, again and again. In a manager that does not lead it only learns, so that it can act as
// soon as it does: the node that is lost may be the one of the manager that led.
type watcher struct {
	Options
	timing
	elected <-chan struct{} // closed once this manager leads
	cache   client.Client
	reader  client.Reader // reads past the cache
	events  events.EventRecorder
	metrics *metrics
	now     func() time.Time
	atOnce  int // questions
	// how long a detachment waits for our own taint to be seen
	markTime time.Duration
	records  map[string]*record // by the name of the node
	lost     map[lostNode]*lostRecord
	ended    ended
	seen     atomic.Pointer[map[string]record] // copies of records, for those that ask beside the looks
}

func newWatcher(o Options, cache client.Client, reader client.Reader, recorder events.EventRecorder) *watcher {
	w := &watcher{
		Options: o, timing: timing{missed, quiet, o.Lag, settled}, cache: cache, reader: reader, events: recorder,
		metrics: newMetrics(o.Driver.Driver()), now: time.Now, atOnce: questions, markTime: markTime,
		records: map[string]*record{}, lost: map[lostNode]*lostRecord{}, ended: ended{said: map[string]span{}},
	}
	w.seen.Store(&map[string]record{})
	return w
}

// Start looks until the context ends. Nodes that are gone are looked for beside the others: no node that falls silent
// waits for them.
func (w *watcher) Start(ctx context.Context) error {
	var loops errgroup.Group
	loops.Go(func() error {
		w.each(ctx, period, "the nodes could not be looked at: none is put out of service", w.pass)
		return nil
	})
	w.each(ctx, askLater/2, "the volumes of nodes that are gone are left to Kubernetes", w.freeLost)
	return loops.Wait()
}

// each does something again and again until the context ends.
func (w *watcher) each(ctx context.Context, every time.Duration, failed string, do func(context.Context) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			w.metrics.failures.Inc()
			w.Log.Warn(failed, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pass looks at all nodes once.
func (w *watcher) pass(ctx context.Context) error {
	seen, err := w.look(ctx)
	if err != nil {
		return err
	}
	now, leads := w.now(), w.leads() // Signs of life that are seen are not younger, however long the questions take.
	count, learned, copies := map[string]int{}, 0, make(map[string]record, len(seen))
	var group errgroup.Group
	group.SetLimit(w.atOnce)
	for _, s := range seen {
		r := w.records[s.name]
		if r == nil {
			r = &record{}
			w.records[s.name] = r
		}
		t := w.timingOf(s)
		r.see(s, now, t)
		copies[s.name] = *r
		todo := turn(plan(s, r, now, t), leads)
		count[state(s, todo, r.silent(now, t.quiet))]++
		w.remark(s, r, todo, now)
		if todo == rest || todo == hold || todo != release && !r.due(now, todo, t) {
			continue
		}
		if todo == learn {
			if learned++; learned > lessons {
				continue
			}
		}
		group.Go(func() error { w.do(ctx, todo, s, r, now); return nil })
	}
	w.seen.Store(&copies)
	_ = group.Wait() // Each has told of its own failure.
	for name := range w.records {
		if _, present := copies[name]; !present {
			delete(w.records, name)
		}
	}
	if leads {
		w.metrics.count(count)
	}
	return nil
}

// turn is what this manager does of the plan: one that does not lead learns, also whether the provider errs.
func turn(todo act, leads bool) act {
	switch {
	case leads:
		return todo
	case todo == learn, todo == ask:
		return learn
	}
	return rest
}

// timingOf is the timing for a node: a kubelet renews its Lease four times in its duration.
func (w *watcher) timingOf(s sight) timing {
	longer := max(0, s.duration/4+time.Second-w.missed)
	return timing{w.missed + longer, w.quiet + longer, w.lag, w.settled + longer}
}

// do does what is planned for a node as it was seen at an instant. Nobody else has its record meanwhile.
func (w *watcher) do(ctx context.Context, todo act, s sight, r *record, seen time.Time) {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if todo == release {
		w.release(bounded, s, r)
		return
	}
	if todo == finish {
		w.finish(bounded, s, r)
		return
	}
	found, says := w.inquire(bounded, s, r)
	switch {
	case todo == learn && s.ready && !r.silent(seen, w.timingOf(s).missed):
		w.learned(s, r, found, says)
	case todo == learn: // A manager that does not lead has asked.
	case found == proven:
		w.fence(ctx, s, r)
	case !s.ready || r.silent(seen, w.timingOf(s).quiet): // A renewal that comes late is no news.
		w.tell(s, r, found, says)
	}
}

// inquire asks about the machine of a node.
func (w *watcher) inquire(ctx context.Context, s sight, r *record) (_ verdict, says string) {
	r.asked = w.now()
	switch {
	case r.query.Node == "":
		return unidentified, s.doubt
	case r.replaced(s):
		return unidentified, "another machine runs under the node's name, and has not registered the driver yet"
	}
	asked := r.asked
	m, err := w.Driver.Machine(ctx, r.query)
	if r.vague = err != nil || m.State == machines.Missing; err != nil {
		return unknown, csiclient.Message(err)
	}
	found := judge(m, asked, r, w.timingOf(s))
	r.note(m, asked, w.timingOf(s))
	return found, m.Says
}
