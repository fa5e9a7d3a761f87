package localvolume

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// patience is how long a refused LocalVolume stays for the call that asked for it.
const patience = 5 * time.Minute

// janitor ends what calls have left: a volume that was deleted after its call had ended, and a LocalVolume that was
// refused and that nobody asks for any more.
type janitor struct{ *Master }

// Reconcile looks at one LocalVolume.
func (j *janitor) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o, err := j.get(ctx, request.Name)
	if err != nil || o == nil {
		return ctrl.Result{}, err
	}
	switch {
	case o.Status.State == v1alpha1.VolumeDeleted, o.DeletionTimestamp != nil && isGone(o):
		_, err := j.withdraw(ctx, o)
		return ctrl.Result{}, err
	case o.Status.State == v1alpha1.VolumeAbsent && hasEnded(o):
		if wait := time.Until(o.CreationTimestamp.Add(patience)); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		_, err := j.withdraw(ctx, o)
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, nil
}
