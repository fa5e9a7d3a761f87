package failover

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/holds"
	"github.com/stowage-csi/stowage/pkg/machines"
)

const (
	// settled is how long a node must be silent before a person's taint counts for more than what its kubelet said last.
	settled = 40 * time.Second
	// Of the time that the driver waits for an answer, the provider has a part, and our own taint may take until the next
	// look to be seen.
	providerTime, markTime = 3 * time.Second, 2 * time.Second
)

// sign is the last sign of life of a node, and what it means.
type sign struct {
	uid, renewal string
	life         time.Time
	marked       time.Time // when our taint was seen first; zero without it
	refuted      bool      // the provider has called the machine off, and the node lived on
}

// Hold answers whether Kubernetes may have a volume detached from a machine. It may not while a kubelet reports the
// volume in use and may be alive: until the node is silent, and has our taint, or has had a person's for long, or its
// machine is proven to be off. Any error says that this is not known.
func (w *watcher) Hold(ctx context.Context, q holds.Query) (holds.Hold, error) {
	why, err := w.whyHeld(ctx, q)
	switch {
	case err != nil:
		w.metrics.detachments.WithLabelValues("unknown").Inc()
	case why != "":
		w.metrics.detachments.WithLabelValues("held").Inc()
		w.Log.Warn("a volume stays attached that was to be detached", "volume", q.Volume, "machine", q.Node, "because", why)
	default:
		w.metrics.detachments.WithLabelValues("free").Inc()
	}
	return holds.Hold{Held: why != "", Says: why}, err
}

// whyHeld returns why a volume must stay attached; nothing when it may be detached.
func (w *watcher) whyHeld(ctx context.Context, q holds.Query) (string, error) {
	names, err := w.nodesOf(ctx, q)
	for _, name := range names {
		var why string
		if why, err = w.whyHeldBy(ctx, name, q); err != nil || why != "" {
			return why, err
		}
	}
	return "", err
}

// whyHeldBy returns why a node keeps a volume. What is read is not older than the question.
func (w *watcher) whyHeldBy(ctx context.Context, name string, q holds.Query) (string, error) {
	node := &corev1.Node{}
	err := w.reader.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return "", nil // There is no kubelet to ask, and nobody but Kubernetes to say what it has waited for.
	}
	if err != nil {
		return "", fmt.Errorf("read node %s: %w", name, err)
	}
	if !slices.Contains(node.Status.VolumesInUse, w.reported(q.Volume)) {
		return "", nil
	}
	_, now, err := w.live(ctx, name)
	if err != nil {
		return "", err
	}
	if w.isDead(ctx, now) {
		return "", nil
	}
	if silence, t := w.silence(now), w.timingOf(now); silence >= t.missed {
		return w.whyHeldBySilent(ctx, node, q, silence >= t.lag && !w.lastOf(now).refuted), nil
	}
	return fmt.Sprintf("the kubelet of node %s reports it in use. End the pods there that use it. If one of them waits "+
		"for the volume, cordon the node before, so that none is bound there anew", name), nil
}

// isDead reports whether the taint of a node says that its kubelet is gone. A taint of ours that was written just now
// is waited for: without a sign of life since it was seen, nobody has come back.
func (w *watcher) isDead(ctx context.Context, now sight) bool {
	ctx, cancel := context.WithTimeout(ctx, w.markTime)
	defer cancel()
	tick := time.NewTicker(w.markTime / 20)
	defer tick.Stop()
	for {
		last, silence := w.lastOf(now), w.silence(now)
		switch {
		case now.mark == theirs:
			return silence >= settled
		case now.mark != ours, silence == 0:
			return false
		case silence >= w.timingOf(now).missed, last.life.Before(last.marked):
			return true
		case !last.marked.IsZero():
			return false
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// whyHeldBySilent returns why a node that is silent keeps a volume, unless its machine is off.
func (w *watcher) whyHeldBySilent(ctx context.Context, node *corev1.Node, q holds.Query, offCounts bool) string {
	ctx, cancel := context.WithTimeout(ctx, providerTime)
	defer cancel()
	m, err := w.Driver.Machine(ctx, machines.Query{Node: q.Node, ProviderID: node.Spec.ProviderID})
	says := m.Says
	switch {
	case err != nil:
		says = csiclient.Message(err)
	case m.State.Off() && offCounts:
		return ""
	}
	return fmt.Sprintf("the kubelet of node %s has reported it in use, is silent, and its machine may still write to it. "+
		"Stop the machine; if it is off for certain, give the node the taint %s. %s", node.Name, taintKey, says)
}

// reported is the name by which kubelets report a volume in use.
func (w *watcher) reported(handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/" + w.Driver.Driver() + "^" + handle)
}

// nodesOf returns the names of the nodes that a machine is, by what it has registered as, or by what csi-attacher has
// noted: a driver that stops takes its registration with it. For no machine in particular they are those that use the
// volume.
func (w *watcher) nodesOf(ctx context.Context, q holds.Query) (names []string, err error) {
	if q.Node == "" {
		return w.usersOf(ctx, q.Volume)
	}
	var registrations storagev1.CSINodeList
	var attachments storagev1.VolumeAttachmentList
	for _, list := range []client.ObjectList{&registrations, &attachments} {
		if err := w.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("look for the node that is %s: %w", q.Node, err)
		}
	}
	for _, n := range registrations.Items {
		if slices.ContainsFunc(n.Spec.Drivers,
			func(d storagev1.CSINodeDriver) bool { return d.Name == w.Driver.Driver() && d.NodeID == q.Node }) {
			names = append(names, n.Name)
		}
	}
	for _, a := range attachments.Items {
		if a.Spec.Attacher == w.Driver.Driver() && a.Annotations[nodeIDNote] == q.Node {
			names = append(names, a.Spec.NodeName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// usersOf returns the names of the nodes whose kubelet reports a volume in use.
func (w *watcher) usersOf(ctx context.Context, handle string) (names []string, err error) {
	var nodes corev1.NodeList
	if err := w.cache.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("look for nodes that use volume %q: %w", handle, err)
	}
	for _, n := range nodes.Items {
		if slices.Contains(n.Status.VolumesInUse, w.reported(handle)) {
			names = append(names, n.Name)
		}
	}
	return names, nil
}

// lastOf is what was seen last of a node; nothing of one that has changed since.
func (w *watcher) lastOf(now sight) sign {
	last := (*w.signs.Load())[now.name]
	if last.uid != now.uid || last.renewal != now.renewal {
		return sign{}
	}
	return last
}

// silence is for how long a node has given no sign of life. One that this process has just seen for the first time has
// given one.
func (w *watcher) silence(now sight) time.Duration {
	last := w.lastOf(now)
	if last.life.IsZero() {
		return 0
	}
	return w.now().Sub(last.life)
}
