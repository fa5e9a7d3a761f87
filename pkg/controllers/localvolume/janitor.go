package localvolume

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// patience is how long a refused order stays for the call that asked for it.
const patience = 5 * time.Minute

// janitor ends what calls have left: what was deleted after its call had ended, and an order that was refused and that
// nobody asks for any more.
type janitor[O order] struct {
	*orders[O]

	mu      sync.Mutex
	refused map[types.NamespacedName]refused // what was seen refused
}

// refused is an order that was seen refused at a time.
type refused struct {
	uid types.UID
	at  time.Time
}

func newJanitor[O order](s *orders[O]) *janitor[O] {
	return &janitor[O]{orders: s, refused: map[types.NamespacedName]refused{}}
}

// Reconcile looks at one order.
func (j *janitor[O]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var none O
	o, err := j.get(ctx, request.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	wait := j.wait(request.NamespacedName, o)
	switch {
	case o == none:
		return ctrl.Result{}, nil
	case isDeleted(o), o.GetDeletionTimestamp() != nil && isGone(o), isRefused(o) && wait <= 0:
		_, err := j.withdraw(ctx, o)
		return ctrl.Result{}, err
	case isRefused(o):
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return ctrl.Result{}, nil
}

// isRefused reports whether the driver has refused an order, with the proof that there is nothing of it.
func isRefused(o v1alpha1.Ordered) bool {
	_, status := o.Ordered()
	return status.State == v1alpha1.StateAbsent && hasEnded(o)
}

// wait is how long a refused order is left alone yet. The time begins when the refusal is seen: work that was refused
// may have taken long.
func (j *janitor[O]) wait(name types.NamespacedName, o O) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	var none O
	if o == none || !isRefused(o) {
		delete(j.refused, name)
		return 0
	}
	if j.refused[name].uid != o.GetUID() {
		j.refused[name] = refused{o.GetUID(), time.Now()}
	}
	return time.Until(j.refused[name].at.Add(patience))
}
