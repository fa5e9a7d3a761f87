package nodestorage

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// hostnameOf is the label by which a PersistentVolume names its node. The kubelet of a node may write it.
func hostnameOf(name string, labels map[string]string) string {
	if hostname := labels[corev1.LabelHostname]; hostname != "" {
		return hostname
	}
	return name
}

// ownsHostname reports whether a PersistentVolume of this node would be used on this node, and tells people why not. A
// node that takes the label of another would have its volumes' paths followed there, where they are another's disks.
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
		return true // Whoever else has it has no right to it.
	case !p.isCounted:
		p.count = true
	case len(p.rivals) > 0:
		p.tell(p.storage, "HostnameNotOwn",
			fmt.Sprintf("the label %s of the node %s is %q, which is the name or the label of %s, too: nothing is offered for"+
				" it until each node has a label of its own", corev1.LabelHostname, p.storage.Name, p.hostname,
				strings.Join(p.rivals, ", ")))
	default:
		return true
	}
	return false
}

// countRivals finds the other nodes that have the hostname of this one as their name or label.
func (r *reconciler) countRivals(ctx context.Context, v *view) error {
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.cache.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	v.isCounted, v.rivals = true, nil
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if node.Name != v.storage.Name && (node.Name == v.hostname || node.Labels[corev1.LabelHostname] == v.hostname) {
			v.rivals = append(v.rivals, node.Name)
		}
	}
	return nil
}
