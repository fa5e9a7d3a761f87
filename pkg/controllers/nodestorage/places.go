package nodestorage

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// otherAt returns another volume that is offered at a path or has a PersistentVolume with it, or "". A pod that uses
// that volume gets whatever is at the path.
func (p *planner) otherAt(path string, volume v1alpha1.VolumeName) v1alpha1.VolumeName {
	for _, o := range p.next.Offers {
		if o.Path == path && o.Volume != volume && !p.dropped[o.Volume] {
			return o.Volume
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.volumes)) {
		pv := p.volumes[name]
		other := v1alpha1.VolumeName(pv.Annotations[v1alpha1.LocalVolumeAnnotation])
		if pv.Spec.Local != nil && pv.Spec.Local.Path == path && other != volume && !p.dropped[other] {
			return other
		}
	}
	return ""
}

// isMoved reports whether a filesystem is mounted at another path than offered. The path of a device is a link with the
// volume's own name, which points to no other device in any directory.
func (p *planner) isMoved(o *v1alpha1.VolumeOffer) bool {
	now, isThere := p.found[o.Volume]
	return isThere && o.VolumeMode == corev1.PersistentVolumeFilesystem && now.Path != o.Path
}

// tellMoved reports, to the volume's claim if it has one, that a volume is not at its offered path.
func (p *planner) tellMoved(o *v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) {
	if !p.isMoved(o) {
		return
	}
	p.tell(p.concerned(pv), "Moved",
		fmt.Sprintf("the volume %s of node %s is offered at %s, and is mounted at %s: pods get what is at the former; mount"+
			" it there again. It is not wiped until then", o.Volume, p.storage.Name, o.Path, p.found[o.Volume].Path))
}

// tellMissing reports, to the volume's claim if it has one, that the node does not find a volume. It reports nothing
// unless the worker is Ready.
func (p *planner) tellMissing(o *v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) {
	if _, isThere := p.found[o.Volume]; isThere || !p.isReady() {
		return
	}
	p.tell(p.concerned(pv), "Missing",
		fmt.Sprintf("the volume %s is not found on node %s: its disk was taken away or does not answer, its filesystem is"+
			" not mounted at %s, or no rule selects it any more; once it is gone for good, name it in the annotation %s of the"+
			" NodeStorage", o.Volume, p.storage.Name, o.Path, v1alpha1.ForgetAnnotation))
}

// isReady reports whether the worker's condition Ready is true, so that it finds disks.
func (p *planner) isReady() bool {
	return slices.ContainsFunc(p.storage.Status.Conditions, func(c v1alpha1.Condition) bool {
		return c.Type == "Ready" && c.Status == metav1.ConditionTrue
	})
}

// concerned returns the object that a volume's problem concerns: the claim of its PersistentVolume, else the
// PersistentVolume, else the NodeStorage.
func (p *planner) concerned(pv *corev1.PersistentVolume) client.Object {
	switch {
	case pv == nil:
		return p.storage
	case isBound(pv) && !isFence(pv, p.storage.Namespace):
		return claimOf(pv)
	}
	return pv
}

// mayWipe reports whether a wipe of a volume affects only that volume. Otherwise it adds a problem: the
// PersistentVolume of another volume may lead to the same path.
func (p *planner) mayWipe(volume v1alpha1.VolumeName) bool {
	now, isThere := p.found[volume]
	if !isThere {
		return true // The worker says why it cannot be wiped.
	}
	isMoved := func(o v1alpha1.VolumeOffer) bool { return o.Volume == volume && p.isMoved(&o) }
	if slices.ContainsFunc(p.next.Offers, isMoved) {
		return false // Already reported.
	}
	other := p.otherAt(now.Path, volume)
	if other != "" {
		p.tell(p.storage, "NotWiped",
			fmt.Sprintf("volume %s is at %s, at which volume %s is offered, too, so that a pod of that one may use it: it is"+
				" not wiped until it is mounted elsewhere, or the other is gone", volume, now.Path, other))
	}
	return other == ""
}

// withdraw removes deletions that would now affect another volume, and those that the operator has cancelled. An
// operator's request that cannot be carried out yet stays in the annotation.
func (p *planner) withdraw() {
	for _, r := range p.storage.Spec.DeleteOperations {
		isReclaim := p.isReclaim(r.Volume)
		switch {
		case p.isComplete(&r):
		case isReclaim && p.isForgotten(r.Volume):
			p.undelete(r.Volume)
		case !p.mayWipe(r.Volume):
			p.undelete(r.Volume)
			if isReclaim {
				p.wanted = append(p.wanted, string(r.Volume))
			}
		}
	}
}

// isReclaim reports whether the deletion of a volume was requested by an operator: no PersistentVolume waits for it.
func (p *planner) isReclaim(volume v1alpha1.VolumeName) bool {
	return !slices.ContainsFunc(p.next.Offers,
		func(o v1alpha1.VolumeOffer) bool { return o.Volume == volume && !o.Retained })
}
