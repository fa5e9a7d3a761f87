package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fence puts a node out of service whose machine has just been proven to be off, if it is still proven.
func (w *watcher) fence(ctx context.Context, s sight, r *record) {
	node, found, says, err := w.prove(ctx, s, r)
	if err == nil && found == proven {
		err = w.taint(ctx, node)
	}
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), errors.Is(err, errChanged):
		w.Log.Info("a node changed while it was proven to be off: it is looked at again", "node", s.name, "error", err)
	case err != nil:
		w.metrics.failures.Inc()
		w.tell(s, r, unknown, err.Error())
	case found != proven:
		w.tell(s, r, found, says)
	default:
		w.metrics.fenced.Inc()
		w.announce(node, corev1.EventTypeWarning, "OutOfService",
			"the node is out of service, its pods are deleted and its volumes detached: %s", says)
		w.tellOfStayers(ctx, node)
	}
}

// errChanged says that a node is not any more what it was when it was proven to be off.
var errChanged = errors.New("the node has changed since")

// prove reads the node past the cache, and asks again after that. What the answer is about cannot have changed when the
// Node object is written with the version that was read.
func (w *watcher) prove(ctx context.Context, s sight, r *record) (*corev1.Node, verdict, string, error) {
	begun := w.now()
	node, now, err := w.live(ctx, s.name)
	if err != nil {
		return nil, unknown, "", err
	}
	if now.uid != r.uid || now.renewal != r.renewal || now.boot != r.boot || now.going || now.mark != none {
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

// taint writes the taint over the Node as it was read.
func (w *watcher) taint(ctx context.Context, node *corev1.Node) error {
	before := node.DeepCopy()
	now := metav1.NewTime(w.now())
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: taintKey, Value: w.Driver.Driver(),
		Effect: corev1.TaintEffectNoExecute, TimeAdded: &now})
	return w.patch(ctx, node, before)
}

func (w *watcher) patch(ctx context.Context, node, before *corev1.Node) error {
	if err := w.cache.Patch(ctx, node,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write the taint of node %s: %w", node.Name, err)
	}
	return nil
}

// release puts a node into service again that works.
func (w *watcher) release(ctx context.Context, s sight, r *record) {
	node, now, err := w.live(ctx, s.name)
	if err == nil {
		if now.uid != r.uid || now.mark != ours || !now.ready || now.inUse > 0 {
			return // It is looked at again.
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

// tellOfStayers tells of pods with claims that tolerate every taint. Kubernetes does not delete them, and their volumes
// stay attached.
func (w *watcher) tellOfStayers(ctx context.Context, node *corev1.Node) {
	var pods corev1.PodList
	err := w.reader.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node.Name})
	if err != nil && !errors.Is(err, context.Canceled) {
		w.Log.Warn("the pods of a node that is out of service could not be listed", "node", node.Name, "error", err)
		return
	}
	var stay []string
	for i := range pods.Items {
		if pod := &pods.Items[i]; hasClaims(pod) && tolerates(pod, w.Driver.Driver()) {
			stay = append(stay, pod.Namespace+"/"+pod.Name)
		}
	}
	if len(stay) == 0 {
		return
	}
	slices.Sort(stay)
	if more := len(stay) - mostNamed; more > 0 {
		stay = append(stay[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	w.announce(node, corev1.EventTypeWarning, "PodsStay",
		"these pods tolerate the taint, so that Kubernetes does not delete them and their volumes stay attached: %s. "+
			"Delete them with --force to use their volumes elsewhere", strings.Join(stay, ", "))
}

const mostNamed = 5

func hasClaims(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes,
		func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

// tolerates reports whether a pod stays on a node with our taint for ever.
func tolerates(pod *corev1.Pod, value string) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		key := t.Key == "" && t.Operator == corev1.TolerationOpExists || t.Key == taintKey &&
			(t.Operator == corev1.TolerationOpExists || t.Value == value)
		return key && (t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute) && t.TolerationSeconds == nil
	})
}
