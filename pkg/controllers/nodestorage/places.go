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

// otherAt returns another volume that is offered at a path or has a PersistentVolume of it, empty for none. Who is
// bound to that one gets what is at the path, whatever that is.
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

// isMoved reports whether a filesystem is mounted elsewhere than it is offered. The path of a device is a link of the
// volume's own name, which leads to nothing else, in whatever directory.
func (p *planner) isMoved(o *v1alpha1.VolumeOffer) bool {
	now, isThere := p.found[o.Volume]
	return isThere && o.VolumeMode == corev1.PersistentVolumeFilesystem && now.Path != o.Path
}

// tellMoved tells who is bound to a volume, if anybody is, that it is not where it is offered.
func (p *planner) tellMoved(o *v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) {
	if !p.isMoved(o) {
		return
	}
	p.tell(p.concerned(pv), "Moved",
		fmt.Sprintf("the volume %s of node %s is offered at %s, and is mounted at %s: pods get what is at the former; mount"+
			" it there again. It is not wiped until then", o.Volume, p.storage.Name, o.Path, p.found[o.Volume].Path))
}

// tellMissing tells who is bound to a volume, if anybody is, that its node has it not, as far as that looks for it.
func (p *planner) tellMissing(o *v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) {
	if _, isThere := p.found[o.Volume]; isThere || !p.isReady() {
		return
	}
	p.tell(p.concerned(pv), "Missing",
		fmt.Sprintf("the volume %s is not found on node %s: its disk was taken away or does not answer, its filesystem is"+
			" not mounted at %s, or no rule selects it any more; once it is gone for good, name it in the annotation %s of the"+
			" NodeStorage", o.Volume, p.storage.Name, o.Path, v1alpha1.ForgetAnnotation))
}

// isReady reports whether the worker says that it finds disks.
func (p *planner) isReady() bool {
	return slices.ContainsFunc(p.storage.Status.Conditions, func(c v1alpha1.Condition) bool {
		return c.Type == "Ready" && c.Status == metav1.ConditionTrue
	})
}

// concerned is whom a problem of a volume concerns: the claim that has its PersistentVolume, or what there is.
func (p *planner) concerned(pv *corev1.PersistentVolume) client.Object {
	switch {
	case pv == nil:
		return p.storage
	case isBound(pv) && pv.Spec.ClaimRef.Name != nobody:
		return claimOf(pv)
	}
	return pv
}

// mayWipe reports whether a wipe of a volume hits that volume alone, and tells people where it does not: whoever is
// bound to the PersistentVolume of another may be led to it.
func (p *planner) mayWipe(volume v1alpha1.VolumeName) bool {
	now, isThere := p.found[volume]
	if !isThere {
		return true // The worker says why it cannot be wiped.
	}
	isMoved := func(o v1alpha1.VolumeOffer) bool { return o.Volume == volume && p.isMoved(&o) }
	if slices.ContainsFunc(p.next.Offers, isMoved) {
		return false // They are told already.
	}
	other := p.otherAt(now.Path, volume)
	if other != "" {
		p.tell(p.storage, "NotWiped",
			fmt.Sprintf("volume %s is at %s, at which volume %s is offered, too, so that a pod of that one may use it: it is"+
				" not wiped until it is mounted elsewhere, or the other is gone", volume, now.Path, other))
	}
	return other == ""
}

// withdraw takes back deletions that would hit another volume by now, and those that an operator has thought better of.
// What he asked for stays in the annotation until it can be done.
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

// isReclaim reports whether the deletion of a volume is an operator's wish: no PersistentVolume waits for it.
func (p *planner) isReclaim(volume v1alpha1.VolumeName) bool {
	return !slices.ContainsFunc(p.next.Offers,
		func(o v1alpha1.VolumeOffer) bool { return o.Volume == volume && !o.Retained })
}
