package volumeset

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/printable"
)

// announce records an event of a set if the reason of its condition Ready differs from that in the conditions that its
// status had before. A new message alone makes no event, because it has counts in it.
func (r *reconciler) announce(set *v1alpha1.PersistentVolumeSet, before []metav1.Condition) {
	was := meta.FindStatusCondition(before, v1alpha1.ConditionReady)
	now := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionReady)
	if now == nil || was != nil && was.Reason == now.Reason {
		return
	}
	kind := corev1.EventTypeWarning
	if now.Status == metav1.ConditionTrue || now.Reason == reasonFilling {
		kind = corev1.EventTypeNormal
	}
	r.events.Eventf(set, nil, kind, now.Reason, "Fill", "%s", printable.Event(now.Message))
}
