package failover

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/holds"
	"github.com/stowage-csi/stowage/pkg/machines"
)

// Parts of the time that the driver waits for an answer: for the provider, and for our own taint, which may be seen
// only in the next pass.
const providerTime, markTime = 2500 * time.Millisecond, 1500 * time.Millisecond

// Hold reports whether a volume must stay attached to a machine. It must while a kubelet reports the volume in use and
// may be alive: until the node is silent and has a taint, ours or a person's, that no sign of life has followed, or
// until its machine is proven to be off. An error means that the answer is not known.
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

// whyHeld returns why a volume must stay attached, or "" if it may be detached.
func (w *watcher) whyHeld(ctx context.Context, q holds.Query) (string, error) {
	names, err := w.nodesOf(ctx, q)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if why, err := w.whyHeldBy(ctx, name, q); err != nil || why != "" {
			return why, err
		}
	}
	return "", nil
}

// whyHeldBy returns why a node keeps a volume. It reads the Node past the cache, so the data is not older than the
// question.
func (w *watcher) whyHeldBy(ctx context.Context, name string, q holds.Query) (string, error) {
	node, now, err := w.live(ctx, name)
	if apierrors.IsNotFound(err) {
		return w.whyHeldByLost(ctx, name, q)
	}
	if err != nil {
		return "", err
	}
	known := w.knownOf(now)
	switch registered := cmp.Or(now.query.Node, known.query.Node); {
	case q.Node == "": // All machines.
	case registered == "" && now.providerID == "":
		return "", fmt.Errorf("which machine node %s is, is not known: the driver is not registered there", name)
	case known.replaced(now) || !isMachine(registered, now.providerID, q.Node): // The report is about another machine.
		return w.whyHeldByLost(ctx, name, q)
	}
	if !slices.Contains(node.Status.VolumesInUse, w.reported(q.Volume)) || w.isDead(ctx, now) {
		return "", nil
	}
	if last := w.lastOf(now); w.silence(last) >= w.timingOf(now).missed {
		return w.whyHeldBySilent(ctx, now, last, q), nil
	}
	return fmt.Sprintf("the kubelet of node %s reports it in use. End the pods there that use it. If one of them waits "+
		"for the volume, cordon the node first, so that no new pod is bound to it", name), nil
}

// isMachine reports whether a node runs on the machine with the ID. It compares the ID that the driver has registered
// on the node, now or before it stopped. Without one it compares the providerID, which ends with the ID of the EC2
// instance.
func isMachine(registered, providerID, id string) bool {
	return registered == id || registered == "" && strings.HasSuffix(providerID, "/"+id)
}

// whyHeldByLost returns why a volume stays attached to a machine that has no Node any longer, and thus no kubelet to
// ask.
func (w *watcher) whyHeldByLost(ctx context.Context, name string, q holds.Query) (string, error) {
	if q.Node == "" {
		return "", fmt.Errorf("node %s is gone, and which machine it was is not known", name)
	}
	ctx, cancel := context.WithTimeout(ctx, providerTime)
	defer cancel()
	m, err := w.Driver.Machine(ctx, machines.Query{Node: q.Node})
	if err != nil {
		return "", fmt.Errorf("node %s is gone or another machine has its name, and what the machine does that it was is "+
			"not known: %w", name, err)
	}
	if m.State == machines.Terminated || w.ended.since(q.Node, m.State, w.now()) >= w.lag {
		return "", nil
	}
	return fmt.Sprintf("node %s is gone or another machine has its name, and the machine that it was may still write to "+
		"it: terminate that one, or stop it for %s. If it is off for certain and its provider does not say so, detach the "+
		"volume there, and then take the finalizer from the VolumeAttachment. %s", name, w.lag, m.Says), nil
}

// isDead reports whether a node's taint proves that its kubelet is gone: the node has missed a renewal, and has given
// no sign of life since the taint was seen. A person's taint counts once Kubernetes also calls the node Unknown, and
// the node has been silent for settled. isDead waits, at most markTime, until a taint of ours that was just written has
// been seen.
func (w *watcher) isDead(ctx context.Context, now sight) bool {
	if now.mark != ours {
		last := w.lastOf(now)
		return now.mark == theirs && now.unheard && w.silence(last) >= w.timingOf(now).settled &&
			last.life.Before(last.marked)
	}
	ctx, cancel := context.WithTimeout(ctx, w.markTime)
	defer cancel()
	tick := time.NewTicker(w.markTime / 20)
	defer tick.Stop()
	for {
		last := w.lastOf(now)
		if last.life.IsZero() || last.mark == ours && w.silence(last) >= w.timingOf(now).missed {
			return last.life.Before(last.marked)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// whyHeldBySilent returns why a silent node keeps a volume, or "" if its machine is proven to be off.
func (w *watcher) whyHeldBySilent(ctx context.Context, now sight, last record, q holds.Query) string {
	ctx, cancel := context.WithTimeout(ctx, providerTime)
	defer cancel()
	if last.query.Node != q.Node { // The record is about another machine.
		last.known, last.newest, last.off = time.Time{}, machines.Machine{}, word{}
	}
	asked := w.now()
	m, err := w.Driver.Machine(ctx, machines.Query{Node: q.Node, ProviderID: now.providerID})
	found, says := unknown, csiclient.Message(err)
	if err == nil {
		found, says = judge(m, asked, &last, w.timingOf(now)), m.Says
	}
	if found == proven {
		return ""
	}
	return fmt.Sprintf("the kubelet of node %s has reported it in use, and is silent: %s. Stop the machine; %s", now.name,
		explain(found, says), w.advice(now))
}

// advice returns instructions for a person who knows that a silent node's machine is off.
func (w *watcher) advice(now sight) string {
	return fmt.Sprintf("if it is off for certain, say so by a value that the taint does not have yet: kubectl taint "+
		"nodes %s %s=VALUE:NoExecute --overwrite. It counts once Kubernetes calls the node Unknown, and it has been silent "+
		"for %s",
		now.name, taintKey, w.timingOf(now).settled)
}

// reported returns the name under which kubelets report a volume in use.
func (w *watcher) reported(handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/" + w.Driver.Driver() + "^" + handle)
}

// nodesOf returns the names of the nodes that run on a machine, by the registered ID or by csi-attacher's annotation: a
// driver that stops removes its registration. Without a machine it returns the nodes that use the volume. If the cache
// has no node for a machine it lags, and nodesOf reads past it: csi-attacher annotates before it asks.
func (w *watcher) nodesOf(ctx context.Context, q holds.Query) (names []string, err error) {
	if q.Node == "" {
		return w.usersOf(ctx, q.Volume)
	}
	if names, err = w.namesIn(ctx, w.cache, q, client.MatchingFields{byMachine: q.Node}); err == nil && len(names) == 0 {
		names, err = w.namesIn(ctx, w.reader, q)
	}
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no node has registered as %s, and no VolumeAttachment names it", q.Node)
	}
	return names, err
}

// namesIn returns the names of the nodes that run on a machine, from a reader: by the registered ID, else by the
// volume's attachment.
func (w *watcher) namesIn(ctx context.Context, from client.Reader, q holds.Query,
	options ...client.ListOption) (names []string, err error) {
	var registrations storagev1.CSINodeList
	var attachments storagev1.VolumeAttachmentList
	for _, list := range []client.ObjectList{&registrations, &attachments} {
		if err := from.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
			return nil, fmt.Errorf("look for the node that is %s: %w", q.Node, err)
		}
	}
	for i := range registrations.Items {
		if slices.Contains(w.machinesOf(&registrations.Items[i]), q.Node) {
			names = append(names, registrations.Items[i].Name)
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	for i := range attachments.Items {
		a := &attachments.Items[i]
		if a.Name == w.attachmentName(a.Spec.NodeName, q.Volume) && slices.Contains(w.machinesOf(a), q.Node) {
			names = append(names, a.Spec.NodeName)
		}
	}
	return names, nil
}

// attachmentName returns the name that Kubernetes gives to a VolumeAttachment.
func (w *watcher) attachmentName(node, handle string) string {
	sum := sha256.Sum256([]byte(handle + w.Driver.Driver() + node))
	return "csi-" + hex.EncodeToString(sum[:])
}

// byMachine is the cache's index of CSINodes and VolumeAttachments by machinesOf.
const byMachine = "machine"

// machinesOf returns the ID of the machine that an object names for the driver, if any.
func (w *watcher) machinesOf(o client.Object) []string {
	switch o := o.(type) {
	case *storagev1.CSINode:
		for _, d := range o.Spec.Drivers {
			if d.Name == w.Driver.Driver() {
				return []string{d.NodeID}
			}
		}
	case *storagev1.VolumeAttachment:
		if id := o.Annotations[nodeIDNote]; o.Spec.Attacher == w.Driver.Driver() && id != "" {
			return []string{id}
		}
	}
	return nil
}

// usersOf returns the names of the nodes whose kubelet reports a volume in use. It reads past the cache: a report that
// the cache does not show yet counts, too.
func (w *watcher) usersOf(ctx context.Context, handle string) (names []string, err error) {
	var nodes corev1.NodeList
	if err := w.reader.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("look for nodes that use volume %q: %w", handle, err)
	}
	for _, n := range nodes.Items {
		if slices.Contains(n.Status.VolumesInUse, w.reported(handle)) {
			names = append(names, n.Name)
		}
	}
	return names, nil
}

// knownOf returns the record of a node, or an empty one.
func (w *watcher) knownOf(now sight) record {
	if known := (*w.seen.Load())[now.name]; known.uid == now.uid {
		return known
	}
	return record{}
}

// lastOf returns the record of a node that has given no sign of life since it was recorded, or an empty one.
func (w *watcher) lastOf(now sight) record {
	if last := w.knownOf(now); last.renewal == now.renewal {
		return last
	}
	return record{}
}

// silence returns how long a node has given no sign of life, according to its record. It returns 0 for an empty record:
// a node that this process has just seen for the first time counts as alive.
func (w *watcher) silence(last record) time.Duration {
	if last.life.IsZero() {
		return 0
	}
	return w.now().Sub(last.life)
}
