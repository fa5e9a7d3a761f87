package nodestorage

import (
	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// unborn decides about an offer of ours whose PersistentVolume was not made yet. It is made once the worker has looked
// at the volume after it heard of the offer, and found it free. A volume of which it says anything else was never used
// by way of this offer, and needs no wipe for it, unless the object may exist by now.
func (p *planner) unborn(o *v1alpha1.VolumeOffer) {
	now, isThere := p.found[o.Volume]
	switch {
	case p.births[o.PersistentVolume] == uncertain:
		p.deliver(o)
	case p.isGivenUp(o.Volume):
		p.dropped[o.Volume] = true
	case !isThere:
		p.tellMissing(o, nil)
	case now.State == v1alpha1.VolumeAvailable: // The worker has yet to look.
	case now.State != v1alpha1.VolumeOffered:
		p.dropped[o.Volume] = true
	default:
		p.deliver(o)
	}
}

// deliver has the PersistentVolume of an offer made, if that still stands: another master may have taken it away since,
// and have offered the volume anew.
func (p *planner) deliver(o *v1alpha1.VolumeOffer) {
	switch {
	case !p.isFresh:
		p.recheck = true
	case p.ownsHostname():
		p.create = append(p.create, *o)
	}
}

// wasUnborn decides about an offer of another master as about one of ours, if the worker says that it never
// acknowledged it: no master makes a PersistentVolume before. What it said may be long past in the cache.
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
