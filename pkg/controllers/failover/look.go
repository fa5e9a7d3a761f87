package failover

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/machines"
)

// taintKey is the key of Kubernetes' own taint (KEP-2268).
const taintKey = corev1.TaintNodeOutOfService

// look reads all nodes from the cache.
func (w *watcher) look(ctx context.Context) ([]sight, error) {
	var nodes corev1.NodeList
	var registrations storagev1.CSINodeList
	var leases coordinationv1.LeaseList
	for _, read := range []struct {
		what    string
		list    client.ObjectList
		options []client.ListOption
	}{
		{"Nodes", &nodes, nil}, {"CSINodes", &registrations, nil},
		{"Leases of nodes", &leases, []client.ListOption{client.InNamespace(corev1.NamespaceNodeLease)}},
	} {
		if err := w.cache.List(ctx, read.list, append(read.options, client.UnsafeDisableDeepCopy)...); err != nil {
			return nil, fmt.Errorf("list %s: %w", read.what, err)
		}
	}
	registered, lease := map[string]*storagev1.CSINode{}, map[string]*coordinationv1.Lease{}
	for i := range registrations.Items {
		registered[registrations.Items[i].Name] = &registrations.Items[i]
	}
	for i := range leases.Items {
		lease[leases.Items[i].Name] = &leases.Items[i]
	}
	all := make([]sight, 0, len(nodes.Items))
	for i := range nodes.Items {
		node := &nodes.Items[i]
		all = append(all, w.sight(node, registered[node.Name], lease[node.Name]))
	}
	return all, nil
}

// live reads one node past the cache.
func (w *watcher) live(ctx context.Context, name string) (*corev1.Node, sight, error) {
	node := &corev1.Node{}
	if err := w.reader.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return nil, sight{}, fmt.Errorf("read node %s: %w", name, err)
	}
	registration, lease := &storagev1.CSINode{}, &coordinationv1.Lease{}
	if err := w.reader.Get(ctx, client.ObjectKey{Name: name}, registration); client.IgnoreNotFound(err) != nil {
		return nil, sight{}, fmt.Errorf("read CSINode %s: %w", name, err)
	}
	if err := w.reader.Get(ctx, client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: name},
		lease); client.IgnoreNotFound(err) != nil {
		return nil, sight{}, fmt.Errorf("read the Lease of node %s: %w", name, err)
	}
	return node, w.sight(node, registration, lease), nil
}

// sight combines a Node, its CSINode and its Lease. The CSINode and the Lease may be nil.
func (w *watcher) sight(node *corev1.Node, registration *storagev1.CSINode, lease *coordinationv1.Lease) sight {
	s := sight{
		name: node.Name, uid: string(node.UID), going: node.DeletionTimestamp != nil, boot: node.Status.NodeInfo.BootID,
		system:     node.Status.NodeInfo.SystemUUID,
		providerID: node.Spec.ProviderID,
		inUse:      len(node.Status.VolumesInUse),
		identity:   identify(w.Driver.Driver(), node, registration),
	}
	s.mark, s.words = w.markOf(node)
	if s.inUse > 0 {
		s.first = string(node.Status.VolumesInUse[0])
	}
	for _, c := range node.Status.Conditions {
		s.ready = s.ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		s.unheard = s.unheard || c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	}
	if lease != nil && lease.Spec.RenewTime != nil {
		s.renewal = lease.Spec.RenewTime.UTC().Format(metav1.RFC3339Micro)
		s.duration = time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
	}
	return s
}

// markOf returns who has put the node out of service, and the values of the taints.
func (w *watcher) markOf(node *corev1.Node) (found mark, values []string) {
	for _, t := range node.Spec.Taints {
		switch {
		case t.Key != taintKey:
			continue
		case isOurs(t, w.Driver.Driver()):
			found = ours // Even with another's taint: nobody else removes ours.
		case found != ours:
			found = theirs
		}
		values = append(values, t.Value)
	}
	return found, values
}

// isOurs reports whether a taint is one that this package writes for the driver.
func isOurs(t corev1.Taint, driver string) bool {
	return t.Key == taintKey && t.Value == driver && t.Effect == corev1.TaintEffectNoExecute
}

// identify determines the machine of a node. A CSINode that belongs to an earlier Node of the same name names that
// Node's machine.
func identify(driver string, node *corev1.Node, registration *storagev1.CSINode) identity {
	if registration == nil {
		return identity{doubt: "the node has no CSINode"}
	}
	owned := false
	for _, owner := range registration.OwnerReferences {
		owned = owned || owner.Kind == "Node" && owner.UID == node.UID
	}
	if !owned {
		return identity{doubt: "the CSINode is of another Node of the same name"}
	}
	for _, d := range registration.Spec.Drivers {
		if d.Name == driver {
			return identity{query: machines.Query{Node: d.NodeID, ProviderID: node.Spec.ProviderID}}
		}
	}
	return identity{doubt: "the driver " + driver + " is not registered on the node"}
}
