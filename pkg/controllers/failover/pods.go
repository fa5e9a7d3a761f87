package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// finish force-deletes the pods that are being deleted on a node out of service, such as those that Kubernetes evicts,
// if the machine is still proven to be off. Kubernetes does the same up to 20 seconds after it calls the node not
// Ready, which takes 50 seconds. The pods are read before the proof, so pods that start later are not deleted.
func (w *watcher) finish(ctx context.Context, s sight, r *record) {
	r.asked = w.now() // Even without pods.
	pods, err := w.podsOf(ctx, s.name)
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.DeletionTimestamp == nil || r.deleted[p.UID] })
	if len(pods) > 0 {
		err = w.deleteProven(ctx, s, r, pods)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		w.metrics.failures.Inc()
		w.Log.Warn("pods of a node out of service are left to Kubernetes", "node", s.name, "error", err)
	}
}

// deleteProven deletes pods of a node if its machine is proven to be off. A failed deletion does not stop the others.
func (w *watcher) deleteProven(ctx context.Context, s sight, r *record, pods []corev1.Pod) (err error) {
	_, found, says, unproven := w.prove(ctx, s, r, ours)
	if unproven != nil || found != proven {
		w.Log.Debug("pods of a node out of service are left to Kubernetes", "node", s.name, "verdict", found, "says", says,
			"error", unproven)
		return nil
	}
	for i := range pods {
		err = errors.Join(err, w.deletePod(ctx, &pods[i], r, says))
	}
	return err
}

// deletePod deletes a pod without waiting for its kubelet, which is dead.
func (w *watcher) deletePod(ctx context.Context, pod *corev1.Pod, r *record, says string) error {
	err := w.cache.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.deleted[pod.UID] = true // A finalizer may keep it.
	if err == nil {
		w.metrics.pods.Inc()
		w.Log.Info("a pod of a node out of service is deleted", "node", pod.Spec.NodeName, "pod",
			pod.Namespace+"/"+pod.Name, "proof", says)
	}
	return nil
}

// podsOf lists the pods of a node that have claims, past the cache.
func (w *watcher) podsOf(ctx context.Context, node string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := w.reader.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !hasClaims(&p) }), nil
}

// tellOfStayers records an event about pods with claims that tolerate our taint forever. Kubernetes does not evict
// them, and their volumes stay attached.
func (w *watcher) tellOfStayers(ctx context.Context, node *corev1.Node) {
	pods, err := w.podsOf(ctx, node.Name)
	if err != nil && !errors.Is(err, context.Canceled) {
		w.Log.Warn("the pods that stay on a node out of service are not known", "node", node.Name, "error", err)
		return
	}
	stay := slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !tolerates(&p, w.Driver.Driver()) })
	if len(stay) == 0 {
		return
	}
	w.announce(node, corev1.EventTypeWarning, "PodsStay",
		"these pods tolerate the taint, so that Kubernetes does not delete them and their volumes stay attached: %s. "+
			"Delete them with --force, while the machine is off, to use their volumes elsewhere", named(stay))
}

// named returns the names of pods, for many only the first.
func named(pods []corev1.Pod) string {
	names := make([]string, len(pods))
	for i := range pods {
		names[i] = pods[i].Namespace + "/" + pods[i].Name
	}
	slices.Sort(names)
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

const mostNamed = 5

func hasClaims(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes,
		func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}

func hasEnded(pod corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// tolerates reports whether a pod tolerates our taint forever.
func tolerates(pod *corev1.Pod, value string) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		key := t.Key == "" && t.Operator == corev1.TolerationOpExists || t.Key == taintKey &&
			(t.Operator == corev1.TolerationOpExists || t.Value == value)
		return key && (t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute) && t.TolerationSeconds == nil
	})
}
