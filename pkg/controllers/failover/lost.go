package failover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/machines"
)

const (
	// nodeIDNote is the annotation in which csi-attacher stores the ID of a VolumeAttachment's node.
	nodeIDNote = "csi.alpha.kubernetes.io/node-id"
	// usualWait is how long a deleted node's pods and VolumeAttachments normally stay: Kubernetes leaves the pods for up
	// to a minute.
	usualWait = 90 * time.Second
)

// lostNode is a node whose Node object is gone, and its machine. No object can be tainted, and Kubernetes waits six
// minutes for the dead kubelet before it detaches the node's volumes.
type lostNode struct{ name, id string }

// lostRecord is a manager's memory of a lost node.
type lostRecord struct {
	since, asked time.Time
	told, vague  bool // an event was recorded; the last answer said nothing
}

// due reports whether it is time to ask. After a minute it asks less often about a machine that the provider may have
// forgotten, since such questions delay others in the same batch.
func (r *lostRecord) due(now time.Time) bool {
	wait := askLater
	if r.vague && now.Sub(r.since) >= time.Minute {
		wait = time.Minute
	}
	return now.Sub(r.asked) >= wait
}

// freeLost frees the volumes of lost nodes.
func (w *watcher) freeLost(ctx context.Context) error {
	left, err := w.leftBehind(ctx) // Even without leading, to fill the cache.
	if err != nil || !w.leads() {
		return err
	}
	maps.DeleteFunc(w.lost, func(n lostNode, _ *lostRecord) bool { return left[n] == nil })
	var group errgroup.Group
	group.SetLimit(lessons)
	for node, attachments := range left {
		r := w.lost[node]
		if r == nil {
			r = &lostRecord{since: w.now()}
			w.lost[node] = r
		}
		if r.due(w.now()) {
			group.Go(func() error { w.free(ctx, node, attachments, r); return nil })
		}
	}
	return group.Wait()
}

// leftBehind returns the driver's VolumeAttachments of lost nodes. They belong to the cache. If another node has the
// name by now, the VolumeAttachments are left to Kubernetes.
func (w *watcher) leftBehind(ctx context.Context) (map[lostNode][]*storagev1.VolumeAttachment, error) {
	ctx, cancel := context.WithTimeout(ctx, patience) // Without read permission the cache never fills.
	defer cancel()
	var list storagev1.VolumeAttachmentList
	var nodes corev1.NodeList
	err := errors.Join(w.cache.List(ctx, &list, client.UnsafeDisableDeepCopy),
		w.cache.List(ctx, &nodes, client.UnsafeDisableDeepCopy))
	if err != nil {
		return nil, fmt.Errorf("list VolumeAttachments and Nodes: %w", err)
	}
	present := make(map[string]bool, len(nodes.Items))
	for i := range nodes.Items {
		present[nodes.Items[i].Name] = true
	}
	left := map[lostNode][]*storagev1.VolumeAttachment{}
	for i := range list.Items {
		a := &list.Items[i]
		if a.Spec.Attacher == w.Driver.Driver() && !present[a.Spec.NodeName] && a.DeletionTimestamp == nil {
			node := lostNode{a.Spec.NodeName, a.Annotations[nodeIDNote]}
			left[node] = append(left[node], a)
		}
	}
	return left, nil
}

// heldError reports why the volumes of a lost node are not freed.
type heldError struct{ error }

// free deletes the VolumeAttachments of a lost node, so that csi-attacher detaches its volumes.
func (w *watcher) free(ctx context.Context, lost lostNode, attachments []*storagev1.VolumeAttachment, r *lostRecord) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r.asked = w.now()
	says, err := w.proveEnded(ctx, lost, r)
	if err == nil {
		err = w.deleteAttachments(ctx, attachments)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: lost.name}}
	_, isHeld := errors.AsType[heldError](err)
	switch {
	case err == nil:
		w.announce(node, corev1.EventTypeNormal, "VolumesFreed",
			"the node is gone, and its VolumeAttachments are deleted, so that its volumes are detached: %s", says)
	case errors.Is(err, errChanged):
		w.Log.Debug("a lost node is back, or its VolumeAttachments have changed", "node", lost.name)
	case isHeld && (r.told || w.now().Sub(r.since) < usualWait):
	case isHeld:
		r.told = true
		w.announce(node, corev1.EventTypeWarning, "VolumesOfLostNode",
			"the node is gone, and its VolumeAttachments are left to Kubernetes, which deletes them after six minutes, unless "+
				"it is told not to: %s", err.Error())
	default:
		w.metrics.failures.Inc()
		w.Log.Warn("some volumes of a node that is gone are left to Kubernetes", "node", lost.name, "error", err)
	}
}

// proveEnded fails unless the machine of a lost node is terminated, and no pod that uses volumes is bound to the node:
// Kubernetes would attach them there again. A terminated machine never runs again, so this answer is never outdated,
// and no Node that appears meanwhile belongs to the machine.
func (w *watcher) proveEnded(ctx context.Context, lost lostNode, r *lostRecord) (says string, err error) {
	if lost.id == "" {
		return "", heldError{errors.New("csi-attacher has not noted which machine it was")}
	}
	m, err := w.Driver.Machine(ctx, machines.Query{Node: lost.id})
	if err == nil { // A failure is no report that the machine runs.
		w.ended.since(lost.id, m.State, w.now()) // For Hold.
	}
	if r.vague = err != nil || m.State == machines.Missing; err != nil {
		return "", heldError{fmt.Errorf("what its machine does is not known: %s", csiclient.Message(err))}
	}
	if m.State != machines.Terminated {
		return "", heldError{fmt.Errorf("its machine is not known to be terminated, and may run again. %s", m.Says)}
	}
	err = w.reader.Get(ctx, client.ObjectKey{Name: lost.name}, &corev1.Node{})
	if err == nil {
		return "", errChanged
	}
	if !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("read node %s: %w", lost.name, err)
	}
	pods, err := w.podsOf(ctx, lost.name)
	pods = slices.DeleteFunc(pods, hasEnded) // Kubernetes attaches nothing for these.
	if err == nil && len(pods) > 0 {
		err = heldError{fmt.Errorf("pods with claims are bound to it still: %s", named(pods))}
	}
	return m.Says, err
}

// deleteAttachments deletes those of the VolumeAttachments that have not changed. One that cannot be deleted does not
// keep the others. The error is errChanged if nothing else is wrong.
func (w *watcher) deleteAttachments(ctx context.Context, attachments []*storagev1.VolumeAttachment) error {
	var changed, failed error
	for _, a := range attachments {
		if err := w.deleteAttachment(ctx, a); errors.Is(err, errChanged) {
			changed = err
		} else {
			failed = errors.Join(failed, err)
		}
	}
	return cmp.Or(failed, changed)
}

// deleteAttachment deletes a VolumeAttachment if it has not changed.
func (w *watcher) deleteAttachment(ctx context.Context, a *storagev1.VolumeAttachment) error {
	err := w.cache.Delete(ctx, a.DeepCopy(), client.Preconditions{UID: &a.UID, ResourceVersion: &a.ResourceVersion})
	switch {
	case apierrors.IsConflict(err):
		return errChanged
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("delete VolumeAttachment %s: %w", a.Name, err)
	}
	w.metrics.freed.Inc()
	return nil
}
