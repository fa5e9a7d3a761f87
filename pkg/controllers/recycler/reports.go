package recycler

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// reports holds the reports of nodes on the use of a local volume. The record of the scrub is the question: the master
// of local volumes passes it on, and the worker of the node answers after it has asked the node's driver. A report of
// another question is older, and proves nothing.
type reports struct {
	question string // of this state of this scrub
	volumes  []v1alpha1.LocalVolume
	unread   error // why the reports could not be read
}

// readReports reads the reports. There are none on volumes of other drivers, and on those that the driver created on a
// single node without a master.
func (r *reconciler) readReports(ctx context.Context, volume *corev1.PersistentVolume) (found reports) {
	found.question = v1alpha1.UseQuestion(volume.Annotations[v1alpha1.RecyclingAnnotation])
	if found.question == "" || volume.Spec.CSI == nil || volume.Spec.CSI.Driver != r.LocalDriver {
		return found
	}
	// The API server's cache is cheap to read. An older report does not count; but absence must be current.
	for _, version := range []string{"0", ""} {
		var list v1alpha1.LocalVolumeList
		found.unread = r.live.List(ctx, &list, client.MatchingFields{metav1.ObjectNameField: volume.Spec.CSI.VolumeHandle},
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
		if found.volumes = list.Items; found.unread != nil || len(found.volumes) > 0 {
			break
		}
	}
	if r.isWithoutMaster(volume.Name, found.unread) {
		found.unread = nil
	}
	return found
}

// isWithoutMaster reports whether reads of reports have failed since an earlier look because the cluster has no such
// resource, and so no master. One API server may briefly not know the resource.
func (r *reconciler) isWithoutMaster(volume string, failure error) bool {
	const unknown = "LocalVolumes are unknown"
	if !meta.IsNoMatchError(failure) {
		r.memory.reset(volume, unknown)
		return false
	}
	return r.memory.since(volume, unknown) >= pause
}

// unreported returns which node has not reported that it does not use the volume, or "". A node without a Node object
// counts as off.
func (u users) unreported(*corev1.PersistentVolume) string {
	if u.reports.unread != nil {
		return fmt.Sprintf("whether its node uses the volume is not known: the LocalVolume cannot be read: %s",
			u.reports.unread)
	}
	for i := range u.reports.volumes {
		o := &u.reports.volumes[i]
		isThere := slices.ContainsFunc(u.nodes, func(n corev1.Node) bool { return n.Name == o.Spec.Node })
		switch use := o.Status.Use; {
		case !isThere:
		case use == nil || use.Question != u.reports.question:
			return fmt.Sprintf("the node %s has not reported yet whether it uses the volume: the master of local volumes "+
				"asks its worker, which answers in the status of the LocalVolume %s/%s; see the pod of the worker on that node, "+
				"and the version of the CustomResourceDefinition", o.Spec.Node, o.Namespace, o.Name)
		case use.InUse:
			return fmt.Sprintf("the node %s reported last that it uses the volume: %s", o.Spec.Node, use.Message)
		}
	}
	return ""
}
