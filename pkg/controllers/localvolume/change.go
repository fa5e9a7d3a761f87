package localvolume

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// again requests another attempt at the spec, which may have been changed, and returns the attempt's number. It returns
// 0 if another writer was first: the caller must read the object again.
func (s *orders[O]) again(ctx context.Context, o O) (attempt int64, err error) {
	spec, _ := o.Ordered()
	spec.Attempt++
	if err := s.write.Update(ctx, o); err != nil {
		return 0, unreachable(ignoreRace(err))
	}
	return spec.Attempt, nil
}

// withdraw removes an order that has nothing on its node. The worker begins with a write to the object, so it cannot
// begin concurrently. If withdraw returns false and no error, another writer was first, and the caller must read the
// object again.
func (s *orders[O]) withdraw(ctx context.Context, o O) (isRemoved bool, err error) {
	var none O
	if o.GetDeletionTimestamp() == nil {
		read := client.Preconditions{UID: ptr.To(o.GetUID()), ResourceVersion: ptr.To(o.GetResourceVersion())}
		if err := s.write.Delete(ctx, o, read); err != nil {
			return false, unreachable(ignoreRace(err))
		}
		o, err = s.get(ctx, o.GetName())
		if err != nil || o == none || o.GetDeletionTimestamp() == nil || !isGone(o) {
			return false, err
		}
	}
	if !controllerutil.RemoveFinalizer(o, finalizer) {
		return false, backends.Errorf(backends.Busy, "the object of the %s %s is gone once those who hold it let it go: %s",
			s.word, o.GetName(), strings.Join(o.GetFinalizers(), ", "))
	}
	err = s.write.Update(ctx, o)
	return err == nil, unreachable(ignoreRace(err))
}

// ignoreRace returns nil for errors that report that another writer was first.
func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
