package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fence puts a node out of service if a second proof confirms that its machine is off.
func (w *watcher) fence(ctx context.Context, s sight, r *record) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	node, found, says, err := w.prove(ctx, s, r, none)
	if err == nil && found == proven {
		err = w.taint(ctx, node)
	}
	because := unknown
	if found == proven {
		because = unwritten
	}
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), errors.Is(err, errChanged):
		w.Log.Debug("a node changed while it was proven to be off: it is looked at again", "node", s.name, "error", err)
	case err != nil:
		w.metrics.failures.Inc()
		w.tell(s, r, because, err.Error())
	case found != proven:
		w.tell(s, r, found, says)
	default:
		w.metrics.fenced.Inc()
		w.announce(node, corev1.EventTypeWarning, "OutOfService",
			"the node is out of service, its pods are deleted and its volumes detached: %s", says)
		w.tellOfStayers(ctx, node)
	}
}

// errChanged reports that a node has changed since its machine was proven to be off.
var errChanged = errors.New("the node has changed since")

// prove reads the node past the cache and then asks about its machine again. If the Node object can be written with the
// resource version that was read, the node has not changed since.
func (w *watcher) prove(ctx context.Context, s sight, r *record, m mark) (*corev1.Node, verdict, string, error) {
	begun := w.now()
	node, now, err := w.live(ctx, s.name)
	if err != nil {
		return nil, unknown, "", err
	}
	if now.uid != r.uid || now.renewal != r.renewal || now.boot != r.boot || now.going || now.mark != m {
		return nil, "", "", errChanged
	}
	if now.doubt == "" && now.query != r.query {
		return nil, "", "", errChanged
	}
	found, says := w.inquire(ctx, now, r)
	if w.now().Sub(begun) > patience {
		return nil, unknown, "the proof took too long: " + says, nil
	}
	return node, found, says, nil
}

// taint adds the taint, if the Node has not changed since it was read.
func (w *watcher) taint(ctx context.Context, node *corev1.Node) error {
	before := node.DeepCopy()
	now := metav1.NewTime(w.now())
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: taintKey, Value: w.Driver.Driver(),
		Effect: corev1.TaintEffectNoExecute, TimeAdded: &now})
	err := w.patch(ctx, node, before)
	if err == nil || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return err
	}
	if _, after, look := w.live(ctx, node.Name); look == nil && after.uid == string(node.UID) && after.mark == ours {
		return nil // Only the answer was lost.
	}
	return err
}

func (w *watcher) patch(ctx context.Context, node, before *corev1.Node) error {
	if err := w.cache.Patch(ctx, node,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write the taint of node %s: %w", node.Name, err)
	}
	return nil
}

// release puts a working node into service again.
func (w *watcher) release(ctx context.Context, s sight, r *record) {
	node, now, err := w.live(ctx, s.name)
	if err == nil {
		if now.uid != r.uid || now.mark != ours || !now.ready || now.inUse > 0 {
			return // The next pass tries again.
		}
		before := node.DeepCopy()
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints,
			func(t corev1.Taint) bool { return isOurs(t, w.Driver.Driver()) })
		err = w.patch(ctx, node, before)
	}
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
	case err != nil:
		w.metrics.failures.Inc()
		w.Log.Warn("a node could not be put into service again", "node", s.name, "error", err)
	default:
		w.metrics.released.Inc()
		w.announce(node, corev1.EventTypeNormal, "InService",
			"the node is in service again: it is Ready, renews its Lease and reports no volume in use%s", "")
	}
}
