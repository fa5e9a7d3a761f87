package nodestorage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// hostnameOf returns the hostname label by which a PersistentVolume names its node, or the node's name. The kubelet of
// a node may write the label.
func hostnameOf(name string, labels map[string]string) string {
	if hostname := labels[corev1.LabelHostname]; hostname != "" {
		return hostname
	}
	return name
}

// ownsHostname reports whether PersistentVolumes of this node are used on this node. If not, it adds a problem. If a
// node takes another node's label, its volumes' paths would be used on that node, where they lead to other disks.
func (p *planner) ownsHostname() bool {
	if !p.isJudged {
		p.isJudged, p.isOwn = true, p.judgeHostname()
	}
	return p.isOwn
}

func (p *planner) judgeHostname() bool {
	first := p.storage.Annotations[v1alpha1.HostnameAnnotation]
	switch {
	case first != "" && first != p.hostname:
		p.tell(p.storage, "HostnameNotOwn",
			fmt.Sprintf("the label %s of the node %s is %q, and was %q when its volumes were offered: nothing is offered for it"+
				" until the label is as it was, or an operator removes the annotation %s of this NodeStorage",
				corev1.LabelHostname, p.storage.Name, p.hostname, first, v1alpha1.HostnameAnnotation))
	case p.hostname == p.storage.Name:
		return true // Another node has no right to it.
	case !p.isCounted:
		p.count = true
	case len(p.rivals) > 0:
		p.tell(p.storage, "HostnameNotOwn",
			fmt.Sprintf("the label %s of the node %s is %q, which is the name or the label of %s, too, or was before that one"+
				" went away: nothing is offered for it until each node has a label of its own", corev1.LabelHostname,
				p.storage.Name, p.hostname, strings.Join(p.rivals, ", ")))
	default:
		return true
	}
	return false
}

// countRivals finds the other nodes that have the hostname of this one as their name or label. A missing node keeps its
// hostname while it has a NodeStorage: its PersistentVolumes wait for it.
func (r *reconciler) countRivals(ctx context.Context, v *view) error {
	nodes, storages := &metav1.PartialObjectMetadataList{}, &v1alpha1.NodeStorageList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.cache.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	if err := r.cache.List(ctx, storages, client.InNamespace(r.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	v.isCounted, v.rivals = true, nil
	count := func(name, label string) {
		if name != v.storage.Name && (name == v.hostname || label == v.hostname) {
			v.rivals = append(v.rivals, name)
		}
	}
	for i := range nodes.Items {
		count(nodes.Items[i].Name, nodes.Items[i].Labels[corev1.LabelHostname])
	}
	for i := range storages.Items {
		count(storages.Items[i].Name, storages.Items[i].Annotations[v1alpha1.HostnameAnnotation])
	}
	slices.Sort(v.rivals)
	v.rivals = slices.Compact(v.rivals)
	return nil
}

// untilRivalsAreGone returns the time until the next check of a node that has rivals: their changes cause no event for
// this node.
func (v *view) untilRivalsAreGone() time.Duration {
	if len(v.rivals) == 0 {
		return 0
	}
	return time.Minute
}
