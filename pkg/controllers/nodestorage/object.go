package nodestorage

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// judge decides about an offer.
func (p *planner) judge(o *v1alpha1.VolumeOffer) {
	pv := p.volumes[o.PersistentVolume]
	switch {
	case pv == nil && p.isUnborn(o):
		p.unborn(o)
	case pv == nil && !p.proven[o.PersistentVolume]:
		p.ask = append(p.ask, o.PersistentVolume)
	case pv == nil:
		p.withoutObject(o)
	case pv.Annotations[v1alpha1.LocalVolumeAnnotation] != string(o.Volume) || pv.Spec.Local == nil:
		p.tell(pv, "NotOurs",
			fmt.Sprintf("it bears the name of the offer of volume %s, and is of another: nothing is done about either",
				o.Volume))
	default:
		p.withObject(o, pv)
	}
}

// withObject decides about an offer whose PersistentVolume is there. Once an administrator has changed its policy to
// Retain that holds also when somebody removes the object by force.
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

// isUnborn reports whether the PersistentVolume of an offer is to be made by this process. One that is wiped for was
// made.
func (p *planner) isUnborn(o *v1alpha1.VolumeOffer) bool {
	return p.births[o.PersistentVolume] > 0 && p.labels != nil && p.operation(o.Volume) == nil
}

// withoutObject decides about an offer whose PersistentVolume is not there: the volume may hold data, whoever removed
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
		p.delete(o.Volume, o.WipePolicy, ofNothing)
	}
	if !p.dropped[o.Volume] {
		p.tellMoved(o, nil)
	}
}

// living decides about a PersistentVolume that nobody deletes.
func (p *planner) living(o *v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) {
	p.tellMoved(o, pv)
	r := p.operation(o.Volume)
	switch {
	case p.isGivenUp(o.Volume):
		p.remove = append(p.remove, pv)
	case isBound(pv):
		if r != nil { // The object came late, and is in use.
			p.undelete(o.Volume)
		}
		p.bound(o, pv)
	case r != nil || p.isGone:
		p.remove = append(p.remove, pv)
	case isFreed(pv) && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		p.remove = append(p.remove, pv)
	default:
		p.tellMissing(o, pv)
	}
}

// bound decides about a volume that a claim has.
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

// leaving decides about a PersistentVolume that is being deleted.
func (p *planner) leaving(o *v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) {
	p.tellMoved(o, pv)
	isKept := o.Retained || pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
	switch {
	case !isHeld(pv): // Others hold it.
	case p.isGivenUp(o.Volume):
		p.release = append(p.release, pv)
	case !isClaimed(pv):
		p.reserve = append(p.reserve, pv)
	case !isFreed(pv): // The claim is still there, or Kubernetes has yet to look.
	case isKept && p.isWrittenRetained(o.Volume), p.isGone && !isKept:
		p.release = append(p.release, pv)
	case isKept:
		o.Retained = true
	default:
		p.wipe(o, pv)
	}
}

// wipe sees to it that a deletion is asked for after the object was deleted, and lets the object go when it is
// complete.
func (p *planner) wipe(o *v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) {
	r := p.operation(o.Volume)
	switch {
	case r == nil || !strings.HasPrefix(string(r.ID), string(pv.UID)+"-"):
		p.delete(o.Volume, o.WipePolicy, string(pv.UID))
	case p.isComplete(r):
		p.release = append(p.release, pv)
	default:
		p.tellError(pv, r)
	}
}

// isWrittenRetained reports whether the storage as it was read says that the volume is retained.
func (p *planner) isWrittenRetained(volume v1alpha1.VolumeName) bool {
	for _, o := range p.storage.Spec.Offers {
		if o.Volume == volume {
			return o.Retained
		}
	}
	return false
}
