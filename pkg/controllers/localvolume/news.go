package localvolume

import (
	"context"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// news wakes the calls that wait for a LocalVolume.
type news struct {
	mu      sync.Mutex
	waiting map[string]*waiting
}

// waiting are the calls that wait for the next change of a LocalVolume.
type waiting struct {
	changed chan struct{} // is closed with it
	calls   int
}

// Changed wakes the calls that wait for the LocalVolume.
func (m *Master) Changed(name string) { m.news.tell(name) }

// Reconcile is told of every change.
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

// next is closed with the next change of the LocalVolume. The caller says when it waits no more.
func (n *news) next(name string) (changed <-chan struct{}, done func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w, ok := n.waiting[name]
	if !ok {
		w = &waiting{changed: make(chan struct{})}
		n.waiting[name] = w
	}
	w.calls++
	return w.changed, func() { n.leave(name, w) }
}

// leave forgets a LocalVolume that nobody waits for.
func (n *news) leave(name string, w *waiting) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w.calls--; w.calls == 0 && n.waiting[name] == w {
		delete(n.waiting, name)
	}
}

// await waits for the end of the attempt that the LocalVolume is in, or of the object. Kinds: Busy when the call ends
// before; Unavailable when the node is down.
func (m *Master) await(ctx context.Context, o *v1alpha1.LocalVolume) error {
	for hasChanged := true; hasChanged; {
		var err error
		if hasChanged, err = m.awaitChange(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// awaitChange waits for a change of a LocalVolume that the worker is at work on.
func (m *Master) awaitChange(ctx context.Context, o *v1alpha1.LocalVolume) (hasChanged bool, err error) {
	next, done := m.news.next(o.Name) // Before the look, so that no change is missed.
	defer done()
	now, err := m.get(ctx, o.Name)
	if err != nil || now == nil || now.UID != o.UID || hasEnded(now) {
		return false, err
	}
	if err := m.checkUp(ctx, now.Spec.Node); err != nil {
		return false, err
	}
	select {
	case <-next:
		return true, nil
	case <-ctx.Done():
		return false, notYet(now)
	}
}

// hasEnded reports whether the worker has nothing to do about the LocalVolume.
func hasEnded(o *v1alpha1.LocalVolume) bool {
	return o.Status.Attempt == o.Spec.Attempt || o.Status.State == v1alpha1.VolumeDeleted
}

// notYet says that a call has ended before the work.
func notYet(o *v1alpha1.LocalVolume) error {
	said := o.Status.Message
	switch {
	case said != "":
		said = "the driver there says: " + said
	case o.Status.State == "":
		said = "the worker there has not begun: look whether it runs"
	default:
		said = "the work there goes on"
	}
	return backends.Errorf(backends.Busy, "the volume %s of node %s is not as it was asked for yet; %s", o.Name,
		o.Spec.Node, said)
}
