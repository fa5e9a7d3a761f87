package nodestorage

import (
	"cmp"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// offers offers all available volumes in one write. While the NodeStorage is being deleted, this is left to its
// successor, unless a retained volume prevents the successor, perhaps forever.
func (p *planner) offers() {
	isEnding := p.storage.DeletionTimestamp != nil
	if p.labels == nil || isEnding && len(p.retained()) == 0 {
		return
	}
	twice := shared(p.storage.Status.LocalVolumes)
	for _, v := range p.storage.Status.LocalVolumes {
		if v.State == v1alpha1.VolumeOffered || p.isTaken(v.Name) { // Or it was offered in the spec that the worker knows.
			continue
		}
		c, err := p.choose(v, twice[v.Path])
		if err != nil {
			p.tell(p.storage, "NotOffered", err.Error())
		} else if p.ownsHostname() {
			p.next.Offers, p.pin = append(p.next.Offers, newOffer(v, c)), p.hostname
		}
	}
}

// choose returns the class in which to offer a volume, or an error that says why it is not offered.
func (p *planner) choose(v v1alpha1.LocalVolumeStatus, isShared bool) (*class, error) {
	if v.State != v1alpha1.VolumeAvailable {
		return nil, fmt.Errorf("volume %s (%s) is not offered, since it is %s: %s", v.Name, cmp.Or(v.Device, v.Path), v.State,
			cmp.Or(v.Message, "the worker does not say why"))
	}
	c, err := classOf(p.classes, v, p.labels)
	if err == nil {
		err = p.mayOffer(v, c, isShared)
	}
	if err == nil && c == nil {
		err = fmt.Errorf("volume %s (%s) is not offered, since no StorageClass of found disks takes it (%s, %s, %s): let one"+
			" of them, or make one", v.Name, cmp.Or(v.Device, v.Path), v.VolumeMode, v.Capacity, p.storage.Name)
	}
	return c, err
}

// mayOffer fails for a volume that an honest worker would not report, that shares its path with another, or that the
// operator gave up: when its disk is absent for a moment, the master would take it for gone for good.
func (p *planner) mayOffer(v v1alpha1.LocalVolumeStatus, c *class, isShared bool) error {
	if err := p.rules.check(v); err != nil {
		return err
	}
	other := p.otherAt(v.Path, v.Name)
	switch {
	case p.isForgotten(v.Name):
		return fmt.Errorf("volume %s (%s) is not offered, since the annotation %s names it: remove its name there to have it"+
			" offered", v.Name, cmp.Or(v.Device, v.Path), v1alpha1.ForgetAnnotation)
	case isShared:
		return fmt.Errorf("the path of volume %s is %q, which another volume has too: neither is offered", v.Name, v.Path)
	case other != "":
		return fmt.Errorf("the path of volume %s is %q, at which volume %s is offered: mount it elsewhere; or, if the other"+
			" is gone for good, delete its claim and name it in the annotation %s", v.Name, v.Path, other,
			v1alpha1.ForgetAnnotation)
	case c != nil && len(p.next.Offers) >= most:
		return fmt.Errorf("volume %s is the %dth: a node offers %d at most", v.Name, len(p.next.Offers)+1, most)
	}
	return nil
}

// isTaken reports whether an offer, a deletion or a PersistentVolume keeps a volume from being offered again.
func (p *planner) isTaken(volume v1alpha1.VolumeName) bool {
	if p.dropped[volume] || p.isOffered(volume) || p.operation(volume) != nil {
		return true
	}
	for _, r := range p.storage.Spec.DeleteOperations { // The worker has not checked the volume since.
		if r.Volume == volume {
			return true
		}
	}
	for _, pv := range p.volumes {
		if pv.Annotations[v1alpha1.LocalVolumeAnnotation] == string(volume) {
			return true
		}
	}
	return false
}
