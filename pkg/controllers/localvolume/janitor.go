package localvolume

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// patience is how long a refused order is kept for the call that requested it.
const patience = 5 * time.Minute

// janitor removes the orders that calls have left: those that were deleted after their call had ended, and refused
// orders that no call requests any longer.
type janitor[O order] struct {
	*orders[O]

	mu      sync.Mutex
	refused map[types.NamespacedName]refused // orders that were seen refused
}

// refused is an order that was seen refused, and when.
type refused struct {
	uid types.UID
	at  time.Time
}

func newJanitor[O order](s *orders[O]) *janitor[O] {
	return &janitor[O]{orders: s, refused: map[types.NamespacedName]refused{}}
}

// Reconcile reconciles one order.
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

// isRefused reports whether the driver has refused an order and proven that nothing of it exists.
func isRefused(o v1alpha1.Ordered) bool {
	_, status := o.Ordered()
	return status.State == v1alpha1.StateAbsent && hasEnded(o)
}

// wait returns how much longer a refused order is kept. The time starts when the refusal is seen, because the refused
// work may have taken long.
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
