package localvolume

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// order is a LocalVolume, a LocalSnapshot or a LocalSnapshotGroup.
type order interface {
	comparable
	v1alpha1.Ordered
}

// orders are all of one type.
type orders[O order] struct {
	*Master
	word     string // for messages, such as "volume"
	empty    func() O
	all      func(ctx context.Context) ([]O, error) // of the cache, not to be changed
	handleOf func(name string) string
	isMade   func(o O) bool // whether it was ever made
	news     news
}

// get reads an order past the cache; nil for none, and for what can be no handle.
func (s *orders[O]) get(ctx context.Context, handle string) (none O, _ error) {
	if !s.isHandle(handle) {
		return none, nil
	}
	if err := ctx.Err(); err != nil {
		return none, backends.Errorf(backends.Busy, "the request has ended: %w", err)
	}
	o := s.empty()
	err := s.live.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: handle}, o)
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, unreachable(err)
	}
	return o, nil
}

// notFound says that there is none.
func (s *orders[O]) notFound(handle string) error {
	return backends.Errorf(backends.NotFound, "there is no %s %q", s.word, handle)
}

// nodeOf is the node that the worker is asked on.
func nodeOf(o v1alpha1.Ordered) string {
	spec, _ := o.Ordered()
	return spec.Node
}

// isUntouched reports whether the worker has not begun.
func isUntouched(o v1alpha1.Ordered) bool {
	_, status := o.Ordered()
	return status.State == ""
}

// isReady reports whether what was ordered was made.
func isReady(o v1alpha1.Ordered) bool {
	_, status := o.Ordered()
	return status.State == v1alpha1.StateReady
}

// isUnwanted reports whether what was ordered is to be removed.
func isUnwanted(o v1alpha1.Ordered) bool {
	spec, _ := o.Ordered()
	return spec.Delete
}

// isDeleted reports whether what was ordered was removed.
func isDeleted(o v1alpha1.Ordered) bool {
	_, status := o.Ordered()
	return status.State == v1alpha1.StateDeleted
}

// isGone reports whether nothing of what was ordered is on its node, nor will be once the object is being deleted.
func isGone(o v1alpha1.Ordered) bool {
	_, status := o.Ordered()
	return isUntouched(o) || isDeleted(o) || status.State == v1alpha1.StateAbsent
}

// isOver reports whether nothing of what was ordered is on its node, nor comes of it.
func isOver(o v1alpha1.Ordered) bool {
	return isGone(o) && (hasEnded(o) || isUnwanted(o) || o.GetDeletionTimestamp() != nil)
}

// hasEnded reports whether the worker has nothing to do about the order.
func hasEnded(o v1alpha1.Ordered) bool {
	spec, status := o.Ordered()
	return status.Attempt == spec.Attempt || isDeleted(o)
}
