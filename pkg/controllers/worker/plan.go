package worker

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// Condition of a NodeStorage, and its reasons.
const (
	conditionReady    = "Ready"
	reasonLooking     = "Looking"
	reasonProblem     = "Problem"
	reasonUnreachable = "DisksUnreachable"
)

// wanted returns the offers and requested wipes of a NodeStorage.
func wanted(object *v1alpha1.NodeStorage) (w report.Wanted) {
	w.Source = report.Source{Object: string(object.UID), Generation: object.Generation}
	spec := object.Spec
	for _, o := range spec.Offers {
		w.Offers = append(w.Offers, report.Offer{ID: o.PersistentVolume, Volume: string(o.Volume)})
	}
	for _, d := range spec.DeleteOperations {
		w.Deletions = append(w.Deletions, report.Deletable{ID: string(d.ID), Volume: string(d.Volume),
			Method: method.Method(d.Policy)})
	}
	return w
}

// status returns the status for the disks' state. Conditions keep the time of their last change. A process that opens
// disks and has not looked at them since its start knows none. The volumes of the last look stay until it has: the
// master gives up an absent volume if its operator once named it as gone for good.
func status(before v1alpha1.NodeStorageStatus, state report.State) v1alpha1.NodeStorageStatus {
	s := v1alpha1.NodeStorageStatus{Pools: before.Pools}
	if state.Problem != "" && len(state.Volumes) == 0 {
		s.LocalVolumes, s.Available, s.Offered = before.LocalVolumes, before.Available, before.Offered
	}
	for _, v := range state.Volumes {
		s.LocalVolumes = append(s.LocalVolumes, localVolume(v))
		switch v.State {
		case report.Available:
			s.Available++
		case report.Offered:
			s.Offered++
		}
	}
	s.Found = int32(len(s.LocalVolumes)) // There are at most 256.
	for _, d := range state.Deletions {
		s.DeleteOperations = append(s.DeleteOperations, v1alpha1.DeleteStatus{
			ID: v1alpha1.OperationID(d.ID), Volume: v1alpha1.VolumeName(d.Volume), State: v1alpha1.DeleteState(d.State),
			Message: v1alpha1.Message(d.Message), Progress: int32(d.Progress), // It is a percentage.
		})
		if d.State != report.Complete {
			s.Deleting++
		}
	}
	ready := v1alpha1.Condition{Type: conditionReady, Status: metav1.ConditionTrue, Reason: reasonLooking,
		Message: "the disks of the node are looked at"}
	if state.Problem != "" {
		ready = v1alpha1.Condition{Type: conditionReady, Status: metav1.ConditionFalse, Reason: reasonProblem,
			Message: v1alpha1.Message(state.Problem)}
	}
	s.Conditions = v1alpha1.SetCondition(before.Conditions, ready, time.Now())
	return s
}

func localVolume(v report.Volume) v1alpha1.LocalVolumeStatus {
	return v1alpha1.LocalVolumeStatus{
		Name: v1alpha1.VolumeName(v.Name), Path: v.Path, Device: v.Device, Identity: v.Identity,
		Capacity: v1alpha1.NewSize(v.SizeBytes), VolumeMode: corev1.PersistentVolumeMode(v.Mode),
		State: v1alpha1.LocalVolumeState(v.State), Message: v1alpha1.Message(v.Message),
	}
}

// unreachable returns the status if the process that opens disks does not answer. It keeps the last known state.
func unreachable(before v1alpha1.NodeStorageStatus, err error) v1alpha1.NodeStorageStatus {
	s := *before.DeepCopy()
	s.Conditions = v1alpha1.SetCondition(before.Conditions, v1alpha1.Condition{
		Type: conditionReady, Status: metav1.ConditionFalse, Reason: reasonUnreachable,
		Message: v1alpha1.Message(err.Error()),
	}, time.Now())
	return s
}
