package localvolume

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// again asks the worker once more for what the spec says, also after the spec was changed, and returns the number of
// the attempt: 0 when somebody else wrote first, so that the object is to be looked at again.
func (m *Master) again(ctx context.Context, o *v1alpha1.LocalVolume) (attempt int64, err error) {
	o.Spec.Attempt++
	if err := m.write.Update(ctx, o); err != nil {
		return 0, unreachable(ignoreRace(err))
	}
	return o.Spec.Attempt, nil
}

// withdraw removes a LocalVolume of which nothing is on its node. The worker begins with a write, so that it cannot
// begin beside this. Unless the object is removed, somebody else wrote first, and it is to be looked at again.
func (m *Master) withdraw(ctx context.Context, o *v1alpha1.LocalVolume) (isRemoved bool, err error) {
	if o.DeletionTimestamp == nil {
		err := m.write.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion})
		if err != nil {
			return false, unreachable(ignoreRace(err))
		}
		o, err = m.get(ctx, o.Name)
		if err != nil || o == nil || o.DeletionTimestamp == nil || !isGone(o) {
			return false, err
		}
	}
	if !controllerutil.RemoveFinalizer(o, finalizer) {
		return false, backends.Errorf(backends.Busy, "the LocalVolume %s is gone once those who hold it let it go: %s",
			o.Name, strings.Join(o.Finalizers, ", "))
	}
	err = m.write.Update(ctx, o)
	return err == nil, unreachable(ignoreRace(err))
}

// isUntouched reports whether the worker has not begun.
func isUntouched(o *v1alpha1.LocalVolume) bool { return o.Status.State == "" }

// isGone reports whether nothing of the volume is on its node, nor will be once the object is being deleted.
func isGone(o *v1alpha1.LocalVolume) bool {
	return isUntouched(o) || o.Status.State == v1alpha1.VolumeDeleted ||
		o.Status.State == v1alpha1.VolumeAbsent
}

// isOver reports whether nothing of the volume is on its node, nor comes of what was asked.
func isOver(o *v1alpha1.LocalVolume) bool {
	return isGone(o) && (hasEnded(o) || o.Spec.Delete || o.DeletionTimestamp != nil)
}

// ignoreRace leaves out errors that say that somebody else wrote first.
func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
