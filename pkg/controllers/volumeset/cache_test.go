package volumeset

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// cache shows a manager an earlier state of the objects of each kind, which advances between reads. It is also an API
// client: reads come from the cache, and writes go to the store.
type cache struct {
	client.Client // for methods that are not called
	m             *manager
	seen          [kinds]objects
	at            [kinds]int
}

func newCache(m *manager) *cache {
	c := &cache{m: m}
	for k := range c.seen {
		c.seen[k] = objects{}
	}
	return c
}

// follow lets the cache see the given number of further changes of a kind.
func (c *cache) follow(k kind, number int) {
	for ; number > 0 && c.at[k] < len(c.m.w.api.history[k]); number-- {
		next := c.m.w.api.history[k][c.at[k]]
		c.at[k]++
		before := c.seen[k][next.name]
		if next.object == nil {
			delete(c.seen[k], next.name)
		} else {
			c.seen[k][next.name] = next.object
		}
		c.m.saw(k, before, next)
	}
}

// pace is the speed at which the caches of a world see the changes of a kind. With different paces a set is newer or
// older than the volumes.
type pace int

const (
	slow   pace = iota // occasionally
	steady             // also before every other read
	quick              // almost immediately
	paces              // number of paces
)

// lag is one more than the number of changes that a first list may lag.
func (p pace) lag() int { return []int{60, 20, 2}[p] }

// keepUp lets the caches see more changes of the quick kinds.
func (w *world) keepUp() {
	for k, p := range w.paces {
		if p != quick {
			continue
		}
		for _, m := range w.managers {
			m.cache.follow(kind(k), 1+w.IntN(2))
		}
	}
}

// look pauses before a read, and may advance the cache.
func (c *cache) look(k kind) error {
	if err := c.m.w.pause(); err != nil {
		return err
	}
	if c.m.w.paces[k] != slow && c.m.w.IntN(2) == 0 {
		c.follow(k, c.m.w.IntN(8))
	}
	return nil
}

func (c *cache) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	k := kindOf(into)
	if err := c.look(k); err != nil {
		return err
	}
	err := c.seen[k].get(key.Name, into)
	if set, ok := into.(*v1alpha1.PersistentVolumeSet); ok {
		c.m.stops = err == nil && wantsNone(set)
	}
	return err
}

// wantsNone reports whether a set must create no more volumes.
func wantsNone(set *v1alpha1.PersistentVolumeSet) bool {
	return set.DeletionTimestamp != nil || set.Spec.MaximumReplicas == 0
}

func (c *cache) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	switch into := into.(type) { // Each zone has one node.
	case *storagev1.CSINodeList:
		for _, zone := range []string{"a", "b"} {
			node := storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: zone}}
			node.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "driver", TopologyKeys: []string{"zone"}}}
			into.Items = append(into.Items, node)
		}
		return nil
	case *metav1.PartialObjectMetadataList:
		for _, zone := range []string{"a", "b"} {
			node := metav1.ObjectMeta{Name: zone, Labels: map[string]string{"zone": zone}}
			into.Items = append(into.Items, metav1.PartialObjectMetadata{ObjectMeta: node})
		}
		return nil
	}
	k := kindOf(into)
	if err := c.look(k); err != nil {
		return err
	}
	return c.seen[k].list(into, options)
}

func (c *cache) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	o := &client.CreateOptions{}
	o.ApplyOptions(options)
	return c.write("create "+object.GetName(), func() error {
		if len(o.DryRun) == 0 && c.m.deposed && !c.m.w.hasSlot(object.GetName()) {
			// A world has no leases: without a slot, the manager has been stopped for longer than it acts on a read.
			c.m.w.running.dead = true
			return errKilled
		}
		return c.m.w.api.create(object, len(o.DryRun) > 0)
	})
}

func (c *cache) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	return c.write("update "+object.GetName(), func() error { return c.m.w.api.update(object, false) })
}

func (c *cache) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	o := &client.DeleteOptions{}
	o.ApplyOptions(options)
	return c.write("delete "+object.GetName(), func() error {
		if now, ok := c.m.w.api.live[volumes][object.GetName()].(*corev1.PersistentVolume); ok &&
			now.ResourceVersion == *o.Preconditions.ResourceVersion {
			c.m.w.mustBeUnbound(now)
		}
		return c.m.w.api.delete(kindOf(object), object.GetName(), o.Preconditions)
	})
}

func (c *cache) Status() client.SubResourceWriter { return statusWriter{c: c} }

type statusWriter struct {
	client.SubResourceWriter
	c *cache
}

func (s statusWriter) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	if set, ok := object.(*v1alpha1.PersistentVolumeSet); ok && len(set.Status.Slots) > v1alpha1.MaxSlots {
		s.c.m.w.violate("THE API SERVER TAKES NO SET with %d slots", len(set.Status.Slots))
	}
	if w := s.c.m.w; w.text != "" {
		text, err := json.Marshal(object)
		if err != nil || len(text) > 3<<19 {
			w.violate("ETCD TAKES NO SET of %d bytes (%v)", len(text), err)
		}
	}
	return s.c.write("status", func() error { return s.c.m.w.api.update(object, true) })
}

// write changes the store, unless the manager is killed before. The answer may be lost.
func (c *cache) write(what string, do func() error) error {
	w := c.m.w
	if err := w.pause(); err != nil {
		return err
	}
	if !w.calm && !w.mild && w.IntN(50) == 0 {
		w.note("%s is not taken", what)
		return apierrors.NewServiceUnavailable("the API server is away")
	}
	before := w.promised()
	err := do()
	w.note("%s %s: %v", c.m.name, what, err)
	w.mustFit(before)
	isLost := !w.calm && !w.mild && w.IntN(50) == 0
	if killed := w.pause(); killed != nil {
		return killed
	}
	if isLost {
		w.note("the answer to %s is lost", c.m.name)
		return apierrors.NewTimeoutError("the answer is lost", 1)
	}
	return err
}

// liveReader bypasses the cache.
type liveReader struct{ m *manager }

func (l liveReader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	return l.read(func() error { return l.m.w.api.live[kindOf(into)].get(key.Name, into) })
}

func (l liveReader) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	err := l.read(func() error { return l.m.w.api.live[kindOf(into)].list(into, options) })
	for range l.m.w.IntN(16) { // The list is long.
		if killed := l.m.w.pause(); killed != nil {
			return killed
		}
	}
	return err
}

// read reads immediately, and the answer may be delayed.
func (l liveReader) read(do func() error) error {
	if err := l.m.w.pause(); err != nil {
		return err
	}
	err := do()
	if killed := l.m.w.pause(); killed != nil {
		return killed
	}
	return err
}
