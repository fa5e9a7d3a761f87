package localvolume

import (
	"context"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// news wakes the calls that wait for an order.
type news struct {
	mu      sync.Mutex
	waiting map[string]*waiting
}

// waiting holds the calls that wait for the next change of an order.
type waiting struct {
	changed chan struct{} // closed at the change
	calls   int
}

// Changed wakes the calls that wait for the order of the name.
func (m *Master) Changed(name string) {
	m.volumes.news.tell(name)
	m.snapshots.news.tell(name)
	m.groups.news.tell(name)
}

// Reconcile is called for every change.
func (n *news) Reconcile(_ context.Context, request ctrl.Request) (ctrl.Result, error) {
	n.tell(request.Name)
	return ctrl.Result{}, nil
}

func (n *news) tell(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w, ok := n.waiting[name]; ok {
		close(w.changed)
		delete(n.waiting, name)
	}
}

// next returns a channel that is closed at the next change of the order. The caller calls done when it stops waiting.
func (n *news) next(name string) (changed <-chan struct{}, done func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w, ok := n.waiting[name]
	if !ok {
		if n.waiting == nil {
			n.waiting = map[string]*waiting{}
		}
		w = &waiting{changed: make(chan struct{})}
		n.waiting[name] = w
	}
	w.calls++
	return w.changed, func() { n.leave(name, w) }
}

// leave forgets an order that no call waits for.
func (n *news) leave(name string, w *waiting) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.calls--; w.calls == 0 && n.waiting[name] == w {
		delete(n.waiting, name)
	}
}

// await waits until the order's attempt has ended or the object is gone. Kinds: Busy when the call ends before;
// Unavailable when the node is down.
func (s *orders[O]) await(ctx context.Context, o O) error {
	for hasChanged := true; hasChanged; {
		var err error
		if hasChanged, err = s.awaitChange(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// awaitChange waits for a change of an order that the worker works on.
func (s *orders[O]) awaitChange(ctx context.Context, o O) (hasChanged bool, err error) {
	var none O
	next, done := s.news.next(o.GetName()) // Before the read, so that no change is missed.
	defer done()
	now, err := s.get(ctx, o.GetName())
	if err != nil || now == none || now.GetUID() != o.GetUID() || hasEnded(now) {
		return false, err
	}
	if err := s.checkUp(ctx, nodeOf(now)); err != nil {
		return false, err
	}
	select {
	case <-next:
		return true, nil
	case <-ctx.Done():
		return false, s.notYet(now)
	}
}

// notYet returns the error of a call that ended before the work.
func (s *orders[O]) notYet(o O) error {
	_, status := o.Ordered()
	said := status.Message
	switch {
	case said != "":
		said = "the driver there says: " + said
	case status.State == "":
		said = "the worker there has not begun: look whether it runs"
	default:
		said = "the work there goes on"
	}
	return backends.Errorf(backends.Busy, "the %s %s of node %s is not as it was asked for yet; %s", s.word, o.GetName(),
		nodeOf(o), said)
}
