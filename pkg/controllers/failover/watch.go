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

// Driver answers questions about machines.
type Driver interface {
	Driver() string
	Machine(ctx context.Context, query machines.Query) (machines.Machine, error)
}

// Options of the failover of nodes.
type Options struct {
	Driver Driver
	Log    *slog.Logger
	// Lag is the maximum age of the provider's answers.
	Lag time.Duration
}

const (
	period = time.Second      // from one pass to the next
	missed = 11 * time.Second // by default a kubelet renews its Lease every 10 s
	quiet  = 15 * time.Second
	// settled is how long a node must be silent before a person's taint overrides the kubelet's last report.
	settled   = 40 * time.Second
	questions = 256 // maximum number of concurrent questions
	lessons   = 64  // maximum that only learn, so that a silent node does not wait for them
	// patience limits a question, and a proof with its consequences, so that no action is based on an old answer.
	patience = 5 * time.Second
)

// Add adds the failover of nodes to m, and returns Hold, which also answers in a manager that does not lead.
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

// watcher checks the nodes periodically. In a manager that does not lead it only learns, so that it can act as soon as
// it leads: the lost node may be that of the previous leader.
type watcher struct {
	Options
	timing
	elected <-chan struct{} // closed once this manager leads
	cache   client.Client
	reader  client.Reader // bypasses the cache
	events  events.EventRecorder
	metrics *metrics
	now     func() time.Time
	atOnce  int // concurrent questions
	// how long a detachment waits for our own taint to be seen
	markTime time.Duration
	records  map[string]*record // by node name
	lost     map[lostNode]*lostRecord
	ended    ended
	seen     atomic.Pointer[map[string]record] // copies of records, for Hold
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

// Start runs passes until the context ends. Lost nodes are handled concurrently, so that a node that falls silent does
// not wait for them.
func (w *watcher) Start(ctx context.Context) error {
	var loops errgroup.Group
	loops.Go(func() error {
		w.each(ctx, period, "the nodes could not be looked at: none is put out of service", w.pass)
		return nil
	})
	w.each(ctx, askLater/2, "the volumes of nodes that are gone are left to Kubernetes", w.freeLost)
	return loops.Wait()
}

// each calls do periodically until the context ends.
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

// pass checks all nodes once.
func (w *watcher) pass(ctx context.Context) error {
	seen, err := w.look(ctx)
	if err != nil {
		return err
	}
	now, leads := w.now(), w.leads() // No sign of life in seen is later, however long the questions take.
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
	_ = group.Wait() // Each has reported its own failure.
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

// turn returns this manager's part of the plan: a manager that does not lead only learns, including whether the
// provider errs.
func turn(todo act, leads bool) act {
	switch {
	case leads:
		return todo
	case todo == learn, todo == ask:
		return learn
	}
	return rest
}

// timingOf returns the timing for a node: a kubelet renews its Lease four times in its duration.
func (w *watcher) timingOf(s sight) timing {
	longer := max(0, s.duration/4+time.Second-w.missed)
	return timing{w.missed + longer, w.quiet + longer, w.lag, w.settled + longer}
}

// do carries out the plan for a node. Seen is the time of the pass. No other goroutine uses the record meanwhile.
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
	case todo == learn: // This manager does not lead, or the Node is being deleted.
	case found == proven:
		w.fence(ctx, s, r)
	case !s.ready || r.silent(seen, w.timingOf(s).quiet): // A late renewal is not reported.
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
