package nodestorage

import (
	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// unborn decides on one of our offers whose PersistentVolume was not created yet. It is created once the worker has
// seen the offer and then found the volume free. If the worker reports any other state, the volume was never used
// through this offer and needs no wipe, unless the object may exist by now.
func (p *planner) unborn(o *v1alpha1.VolumeOffer) {
	now, isThere := p.found[o.Volume]
	switch {
	case p.labels == nil: // The node may return, and finds all unchanged.
	case p.births[o.PersistentVolume] == uncertain:
		p.deliver(o)
	case p.isGivenUp(o.Volume):
		p.dropped[o.Volume] = true
	case !isThere:
		p.tellMissing(o, nil)
	case now.State == v1alpha1.VolumeAvailable: // The worker has not checked yet.
	case now.State != v1alpha1.VolumeOffered:
		p.dropped[o.Volume] = true
	default:
		p.deliver(o)
	}
}

// deliver plans the creation of an offer's PersistentVolume, if the offer is still valid: another master may have
// removed it and offered the volume again.
func (p *planner) deliver(o *v1alpha1.VolumeOffer) {
	switch {
	case !p.isFresh:
		p.recheck = true
	case p.ownsHostname():
		p.create = append(p.create, *o)
	}
}

// wasUnborn treats an offer of another master as one of ours if the worker reports that it never acknowledged the
// offer: no master creates a PersistentVolume before that. The report in the cache may be outdated.
func (p *planner) wasUnborn(o *v1alpha1.VolumeOffer) bool {
	if o.Retained {
		return false
	}
	switch p.found[o.Volume].State {
	case v1alpha1.VolumeAvailable:
		if p.isFresh {
			p.adopt = append(p.adopt, o.PersistentVolume)
		}
		p.recheck = p.recheck || !p.isFresh
		return true
	case v1alpha1.VolumeInUse, v1alpha1.VolumeNotBlank, v1alpha1.VolumeUnusable:
		p.dropped[o.Volume] = true
		return true
	default:
		return false
	}
}

// fence plans to create the PersistentVolume of an offer that has none, for a claim that does not exist, before its
// volume is wiped. Another master may have requested the creation, and the API server may carry it out at any time: a
// claim could then be bound to a volume that is being wiped. Until the wipe is complete, the name is taken.
//
// If the API server refuses the object, with and without a claim, for example because its path has left the directories
// of the policy, it refuses every master's, and the wipe needs no fence.
func (p *planner) fence(o *v1alpha1.VolumeOffer) {
	switch {
	case p.births[o.PersistentVolume] == barred:
		p.delete(o.Volume, wipePolicyOf(o), ofNothing)
	case !p.mayWipe(o.Volume):
	case !p.isFresh: // Another master may have removed the offer, and offered the volume again.
		p.recheck = true
	default:
		p.occupy = append(p.occupy, *o)
	}
}
