package nodestorage

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// judge decides on an offer.
func (p *planner) judge(o *v1alpha1.VolumeOffer) {
	pv := p.volumes[o.PersistentVolume]
	switch {
	case pv == nil && p.isUnborn(o):
		p.unborn(o)
	case pv == nil && !p.proven[o.PersistentVolume]:
		p.ask = append(p.ask, o.PersistentVolume)
	case pv == nil:
		p.withoutObject(o)
	case !isOf(pv, o):
		p.tell(pv, "NotOurs",
			fmt.Sprintf("it bears the name of the offer of volume %s, and is of another: nothing is done about either",
				o.Volume))
	default:
		p.withObject(o, pv)
	}
}

// withObject decides on an offer with a PersistentVolume. Once an administrator has changed its policy to Retain, the
// offer keeps that policy even if the object is removed by force.
func (p *planner) withObject(o *v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) {
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
		o.ReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	if pv.DeletionTimestamp == nil {
		p.living(o, pv)
	} else {
		p.leaving(o, pv)
	}
}

// isUnborn reports whether this process must still create the PersistentVolume of an offer. If a wipe of the volume was
// requested, the object was created before.
func (p *planner) isUnborn(o *v1alpha1.VolumeOffer) bool {
	b := p.births[o.PersistentVolume]
	return (b == untried || b == uncertain) && !p.isGone && p.operation(o.Volume) == nil
}

// withoutObject decides on an offer whose PersistentVolume does not exist: the volume may hold data, whoever removed
// the object.
func (p *planner) withoutObject(o *v1alpha1.VolumeOffer) {
	r := p.operation(o.Volume)
	isKept := o.Retained || o.ReclaimPolicy == corev1.PersistentVolumeReclaimRetain
	switch {
	case p.isGivenUp(o.Volume) || r != nil && p.isComplete(r) || p.isGone && !isKept:
		p.dropped[o.Volume] = true
	case r != nil:
		p.tellError(p.storage, r)
	case p.wasUnborn(o):
	case isKept:
		o.Retained = true
	default:
		p.fence(o)
	}
	if !p.dropped[o.Volume] {
		p.tellMoved(o, nil)
	}
}

// living decides on a PersistentVolume that is not being deleted.
func (p *planner) living(o *v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) {
	p.tellMoved(o, pv)
	r := p.operation(o.Volume)
	switch {
	case p.isGivenUp(o.Volume):
		p.remove = append(p.remove, pv)
	case isBound(pv):
		if r != nil { // The object was created late, and is in use.
			p.undelete(o.Volume)
		}
		p.bound(o, pv)
	case r != nil || p.isGone || o.Retained && pv.Spec.ClaimRef == nil: // Or it was created late, for any claim.
		p.remove = append(p.remove, pv)
	case isFreed(pv) && (isFence(pv, p.storage.Namespace) ||
		pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete):
		p.remove = append(p.remove, pv)
	default:
		p.tellMissing(o, pv)
	}
}

// bound decides on a volume with a claim.
func (p *planner) bound(o *v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) {
	if !p.isGone {
		p.tellMissing(o, pv)
		return
	}
	p.tell(claimOf(pv), "NodeGone",
		fmt.Sprintf("the node %s of the volume %s is gone; the volume stays until the node returns,"+
			" or an operator sets the annotation %s of the NodeStorage to \"true\"", p.storage.Name, pv.Name,
			v1alpha1.ForgetAnnotation))
}

// leaving decides on a PersistentVolume that is being deleted.
func (p *planner) leaving(o *v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) {
	p.tellMoved(o, pv)
	isKept := o.Retained || pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
	switch {
	case !isHeld(pv): // Only others' finalizers are left.
	case p.isGivenUp(o.Volume):
		p.release = append(p.release, pv)
	case !isClaimed(pv):
		p.reserve = append(p.reserve, pv)
	case !isFreed(pv): // The claim still exists, or Kubernetes has not checked yet.
	case p.isReclaimed(o, pv):
		p.wipe(o, pv)
	case isKept && p.isWrittenRetained(o.Volume), p.isGone && !isKept:
		p.release = append(p.release, pv)
	case isKept:
		o.Retained = true
	default:
		p.wipe(o, pv)
	}
}

// wipe requests a deletion after the object was deleted, and releases the object when the deletion is complete. A cache
// that is behind proves nothing: somebody may have removed the object by force, and created one of its name that is in
// use.
func (p *planner) wipe(o *v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) {
	r := p.operation(o.Volume)
	isRequested := r != nil && strings.HasPrefix(string(r.ID), string(pv.UID)+"-")
	switch {
	case !isRequested && !p.proven[pv.Name]:
		p.ask = append(p.ask, pv.Name)
	case !isRequested:
		p.delete(o.Volume, wipePolicyOf(o), string(pv.UID))
	case p.isComplete(r):
		p.release = append(p.release, pv)
	default:
		p.tellError(pv, r)
	}
}

// isWrittenRetained reports whether the volume is retained according to the NodeStorage as it was read.
func (p *planner) isWrittenRetained(volume v1alpha1.VolumeName) bool {
	for _, o := range p.storage.Spec.Offers {
		if o.Volume == volume {
			return o.Retained
		}
	}
	return false
}
