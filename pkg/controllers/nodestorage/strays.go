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

// strays handles PersistentVolumes of the node without an offer: the NodeStorage was lost, or a master that had lost
// its lease created them late.
func (p *planner) strays() {
	for _, name := range slices.Sorted(maps.Keys(p.volumes)) {
		pv := p.volumes[name]
		isOffered := slices.ContainsFunc(p.next.Offers,
			func(o v1alpha1.VolumeOffer) bool { return o.PersistentVolume == name })
		if isOffered || pv.DeletionTimestamp != nil && !isHeld(pv) {
			continue
		}
		if !p.proven[name] {
			p.ask = append(p.ask, name)
			continue
		}
		o, err := offerOf(pv)
		if err != nil {
			p.tell(pv, "NotOurs", err.Error())
			continue
		}
		p.stray(o, pv)
	}
}

// stray adds an offer for a PersistentVolume that has none, so that it is handled as the others. If its volume has
// another offer, that one comes first: this PersistentVolume is deleted, so that no claim is bound to it, and offered
// when the other is gone.
func (p *planner) stray(o v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) {
	switch {
	case !p.isOffered(o.Volume):
		if len(p.next.Offers) < most {
			p.next.Offers = append(p.next.Offers, o)
		}
	case !p.isFresh:
		p.recheck = true
	case isBound(pv):
		p.tell(pv, "OfferedTwice",
			fmt.Sprintf("the volume %s of node %s has another PersistentVolume too, and this one is bound: delete its pod and "+
				"claim", o.Volume, p.storage.Name))
	case pv.DeletionTimestamp == nil:
		p.remove = append(p.remove, pv)
	case !isClaimed(pv):
		p.reserve = append(p.reserve, pv)
	}
}

// reclaims requests the wipes that the operator asks for in the annotation: of retained volumes, and of volumes that
// are Dirty or NotBlank.
func (p *planner) reclaims() {
	var later []string
	for _, name := range p.wanted {
		volume := v1alpha1.VolumeName(name)
		at := slices.IndexFunc(p.next.Offers, func(o v1alpha1.VolumeOffer) bool { return o.Volume == volume })
		state, isDone := p.found[volume].State, true
		switch {
		case at >= 0 && p.next.Offers[at].Retained && !p.isForgotten(volume):
			isDone = p.wipeRetained(&p.next.Offers[at])
		case at < 0 && !p.isForgotten(volume) && (state == v1alpha1.VolumeDirty || state == v1alpha1.VolumeNotBlank):
			isDone = p.delete(volume, p.policyOf(volume), ofNothing)
		default:
			p.tell(p.storage, "NotReclaimed",
				fmt.Sprintf("the annotation %s names %.80q: name volumes that are retained, Dirty or NotBlank, and that %s does"+
					" not name", v1alpha1.ReclaimAnnotation, name, v1alpha1.ForgetAnnotation))
		}
		if !isDone {
			later = append(later, name)
		}
	}
	p.wanted = later
}

// wipeRetained has a retained volume wiped, and reports whether the wipe is requested. As for every other offer, an
// object takes the name first.
func (p *planner) wipeRetained(o *v1alpha1.VolumeOffer) (asked bool) {
	if p.volumes[o.PersistentVolume] == nil && p.operation(o.Volume) == nil && !p.isGone {
		p.fence(o)
	}
	return p.operation(o.Volume) != nil
}

// isReclaimed reports whether a PersistentVolume that is being deleted has taken the name for the wipe of a retained
// volume, which the operator wants, and which may have been requested.
func (p *planner) isReclaimed(o *v1alpha1.VolumeOffer, pv *corev1.PersistentVolume) bool {
	return o.Retained && isFence(pv, p.storage.Namespace) && !p.isForgotten(o.Volume) &&
		(slices.Contains(p.wanted, string(o.Volume)) || p.operation(o.Volume) != nil)
}

// policyOf returns the wipe policy of a volume that was never offered.
func (p *planner) policyOf(volume v1alpha1.VolumeName) v1alpha1.WipePolicy {
	if c, err := classOf(p.classes, p.found[volume], p.labels); err == nil && c != nil {
		return thorough(c.WipePolicy)
	}
	return v1alpha1.WipeZero
}

// thorough returns the wipe policy for an operator's request: zero instead of none, even if the class does not wipe
// released volumes.
func thorough(policy v1alpha1.WipePolicy) v1alpha1.WipePolicy {
	if policy == v1alpha1.WipeNone {
		return v1alpha1.WipeZero
	}
	return policy
}

// wipePolicyOf returns the wipe policy of an offered volume. Only an operator has a retained one wiped.
func wipePolicyOf(o *v1alpha1.VolumeOffer) v1alpha1.WipePolicy {
	if o.Retained {
		return thorough(o.WipePolicy)
	}
	return o.WipePolicy
}

// tellError reports a deletion that fails.
func (p *planner) tellError(about client.Object, r *v1alpha1.DeleteRequest) {
	if s := p.states[r.ID]; s.State == v1alpha1.DeleteError {
		p.tell(about, "WipeFailed", fmt.Sprintf("volume %s of node %s is not wiped, and is tried again: %s", r.Volume,
			p.storage.Name, s.Message))
	}
}

// claimOf returns the claim that a PersistentVolume names.
func claimOf(pv *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	ref := pv.Spec.ClaimRef
	return &corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
	}
}
