package volumeset

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// manager is the whole manager: its parts, and the contents of its queues.
type manager struct {
	w       *world
	name    string
	ctx     context.Context // Its end is the manager's end.
	cancel  context.CancelFunc
	deposed bool
	cache   *cache
	sets    *reconciler
	remover *remover
	queue   *queue

	stops, stopped bool                 // the set must create no more volumes; a completed reconciliation has seen that
	dirty, looking bool                 // the set must be reconciled; it is being reconciled
	wake           time.Time            // when it must be reconciled even without an event
	leaving        map[string]time.Time // the PersistentVolumes that end, and when each is looked at
	removing       map[string]bool
}

// worldFresh stands for freshFor. In a world, the clock moves on by seconds between two calls.
const worldFresh = 5 * time.Minute

func newManager(w *world, name string) *manager {
	m := &manager{w: w, name: name, dirty: true, leaving: map[string]time.Time{}, removing: map[string]bool{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.cache = newCache(m)
	o := Options{Driver: driverOf{m}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Slots: 3, Workers: 6,
		Timeout: time.Hour, Surplus: time.Minute}
	if w.wide {
		o.Slots = v1alpha1.MaxSlots
	}
	m.sets, m.remover = newParts(m.cache, liveReader{m}, o, &events.FakeRecorder{}, func(string) { m.dirty = true })
	m.sets.now, m.sets.filler.now, m.sets.filler.identity = w.now, w.now, name
	m.remover.now, m.sets.filler.fresh, m.remover.fresh = w.now, worldFresh, worldFresh
	m.sets.name = func() string { w.slots++; return fmt.Sprintf("volume-%03d", w.slots) }
	m.sets.filler.queue.ShutDown()
	m.queue = &queue{m: m, working: map[slotKey]bool{}, failures: map[slotKey]int{}, due: map[slotKey]time.Time{}}
	m.sets.filler.queue = m.queue
	for k := range m.cache.seen { // Its first list may be old.
		m.cache.follow(kind(k), max(1, len(w.api.history[k])-w.IntN(w.paces[k].lag())))
	}
	return m
}

func (m *manager) kill() {
	m.w.note("%s is killed", m.name)
	m.cancel()
	for _, t := range slices.Clone(m.w.tasks) {
		if t.m == m {
			m.w.kill(t)
		}
	}
	m.w.managers = slices.DeleteFunc(m.w.managers, func(other *manager) bool { return other == m })
}

// saw handles a change that the cache has seen.
func (m *manager) saw(k kind, before client.Object, c change) {
	if k != volumes {
		m.dirty = true
		if set, ok := c.object.(*v1alpha1.PersistentVolumeSet); ok && !wantsNone(set) {
			m.stopped = false
		}
		return
	}
	selected := labels.SelectorFromSet(labels.Set{"pool": "a"})
	for _, object := range []client.Object{before, c.object} {
		if object != nil && (selected.Matches(labels.Set(object.GetLabels())) ||
			object.GetAnnotations()[v1alpha1.VolumeSetAnnotation] != "") {
			m.dirty = true
		}
	}
	if c.object != nil && isEnding(c.object) {
		m.leaving[c.name] = m.w.clock
	}
}

// act begins work from the manager's queues, and reports whether there was any.
func (m *manager) act() bool {
	type begin func()
	var can []begin
	if !m.looking && (m.dirty || !m.wake.IsZero() && !m.wake.After(m.w.clock)) {
		can = append(can, m.look)
	}
	for _, key := range m.queue.ready() {
		can = append(can, func() { m.fill(key) })
	}
	for _, name := range slices.Sorted(maps.Keys(m.leaving)) {
		if !m.removing[name] && len(m.removing) < 3 && !m.leaving[name].After(m.w.clock) {
			can = append(can, func() { m.remove(name) })
			break
		}
	}
	if len(can) == 0 {
		return false
	}
	can[m.w.IntN(len(can))]()
	return true
}

func (m *manager) look() {
	m.dirty, m.looking, m.wake = false, true, time.Time{}
	m.w.begin(m, "look", func() {
		result, err := m.sets.Reconcile(m.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: "set"}})
		if result.RequeueAfter > 0 {
			m.wake = m.w.clock.Add(result.RequeueAfter)
		}
		m.dirty = m.dirty || err != nil
		if isBehind := result.RequeueAfter == 100*time.Millisecond; err == nil && !isBehind {
			m.stopped = m.stops
		}
	}, func() { m.looking = false })
}

func (m *manager) fill(key slotKey) {
	m.queue.take(key)
	m.w.begin(m, "fill", func() {
		m.queue.now = key
		m.sets.filler.next(m.ctx)
	}, func() {})
}

func (m *manager) remove(name string) {
	delete(m.leaving, name)
	m.removing[name] = true
	m.w.begin(m, "remove", func() {
		result, err := m.remover.Reconcile(m.ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		if _, isSeen := m.leaving[name]; !isSeen && (err != nil || result.RequeueAfter > 0) {
			m.leaving[name] = m.w.clock.Add(result.RequeueAfter)
		}
	}, func() { delete(m.removing, name) })
}

// queue is the filler's queue, on the world's clock.
type queue struct {
	workqueue.TypedRateLimitingInterface[slotKey]
	m        *manager
	now      slotKey // which Get returns
	waiting  []slotKey
	working  map[slotKey]bool
	failures map[slotKey]int
	due      map[slotKey]time.Time
}

func (q *queue) Add(key slotKey) {
	if !slices.Contains(q.waiting, key) {
		q.waiting = append(q.waiting, key)
	}
}

func (q *queue) AddRateLimited(key slotKey) {
	q.due[key] = q.m.w.clock.Add(min(lastPause, firstPause<<min(q.failures[key], 10)))
	q.failures[key]++
	q.Add(key)
}

func (q *queue) Forget(key slotKey)   { delete(q.failures, key) }
func (q *queue) Get() (slotKey, bool) { return q.now, false }
func (q *queue) Done(key slotKey)     { delete(q.working, key) }
func (q *queue) take(key slotKey) {
	q.waiting = slices.DeleteFunc(q.waiting, func(other slotKey) bool { return other == key })
	q.working[key] = true
}

func (q *queue) ready() (keys []slotKey) {
	if len(q.working) >= 3 {
		return nil
	}
	for _, key := range q.waiting {
		if !q.working[key] && !q.due[key].After(q.m.w.clock) {
			keys = append(keys, key)
		}
	}
	return keys
}
