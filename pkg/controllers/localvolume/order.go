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

// orders handles all orders of one type.
type orders[O order] struct {
	*Master
	word     string // for messages, for example "volume"
	empty    func() O
	all      func(ctx context.Context, which ...client.ListOption) ([]O, error) // of the cache, not to be changed
	handleOf func(name string) string
	isMade   func(o O) bool // whether it was ever created
	news     news
}

// get reads an order past the cache. It returns nil if none exists or the text cannot be a handle.
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

// notFound returns the error for a handle without an order.
func (s *orders[O]) notFound(handle string) error {
	return backends.Errorf(backends.NotFound, "there is no %s %q", s.word, handle)
}

// nodeOf returns the node whose worker is asked.
func nodeOf(o v1alpha1.Ordered) string {
	spec, _ := o.Ordered()
	return spec.Node
}

// isUntouched reports whether the worker has not begun.
func isUntouched(o v1alpha1.Ordered) bool {
	_, status := o.Ordered()
	return status.State == ""
}

// isReady reports whether the worker has created the volume, snapshot or group.
func isReady(o v1alpha1.Ordered) bool {
	_, status := o.Ordered()
	return status.State == v1alpha1.StateReady
}

// isUnwanted reports whether the order's deletion was requested.
func isUnwanted(o v1alpha1.Ordered) bool {
	spec, _ := o.Ordered()
	return spec.Delete
}

// isDeleted reports whether the worker has deleted the volume, snapshot or group.
func isDeleted(o v1alpha1.Ordered) bool {
	_, status := o.Ordered()
	return status.State == v1alpha1.StateDeleted
}

// isGone reports whether nothing of the order is on its node, nor will be once the object is being deleted.
func isGone(o v1alpha1.Ordered) bool {
	_, status := o.Ordered()
	return isUntouched(o) || isDeleted(o) || status.State == v1alpha1.StateAbsent
}

// isOver reports whether nothing of the order is on its node or will be created.
func isOver(o v1alpha1.Ordered) bool {
	return isGone(o) && (hasEnded(o) || isUnwanted(o) || o.GetDeletionTimestamp() != nil)
}

// hasEnded reports whether the worker has nothing left to do for the order.
func hasEnded(o v1alpha1.Ordered) bool {
	spec, status := o.Ordered()
	return status.Attempt == spec.Attempt || isDeleted(o)
}
