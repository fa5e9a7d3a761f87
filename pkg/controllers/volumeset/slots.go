package volumeset

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/params/placeholder"
)

const (
	// reserved begins the names of class parameters that are for the sidecars; the driver is not given them.
	reserved = "csi.storage.k8s.io/"
	// fsTypeParameter names the filesystem of a class's volumes.
	fsTypeParameter = reserved + "fstype"
)

// slotClass takes from a StorageClass what a volume depends on.
func slotClass(class *storagev1.StorageClass) (v1alpha1.SlotClass, error) {
	c := v1alpha1.SlotClass{MountOptions: class.MountOptions, FSType: class.Parameters[fsTypeParameter]}
	for _, key := range slices.Sorted(maps.Keys(class.Parameters)) {
		switch {
		case key == fsTypeParameter:
		case strings.HasPrefix(key, reserved):
			return c, fmt.Errorf("the parameter %q of StorageClass %s cannot be honoured: volumes of a set are created without"+
				" secrets and before there is a claim; use a class without it", key, class.Name)
		default:
			if mark, found := placeholder.OfClaim(class.Parameters[key]); found {
				return c, fmt.Errorf(
					"the parameter %q of StorageClass %s has %s, and volumes of a set are created before there is a claim;"+
						" use a class without it", key, class.Name, mark)
			}
			if c.Parameters == nil {
				c.Parameters = map[string]string{}
			}
			c.Parameters[key] = class.Parameters[key]
		}
	}
	return c, nil
}

// newName is a name that was never used, and never will be again.
func newName() string { return "pvs-" + uuid.NewString() }

// newSlot is a slot in the place, which this manager will ask for.
func (r *reconciler) newSlot(o *round, where place) v1alpha1.VolumeSlot {
	return v1alpha1.VolumeSlot{Name: r.name(), Manager: r.filler.identity, Order: o.order.Name, Segments: where}
}

// takeOver makes the slots of another manager this one's. What that one has asked for is not known, so that from now on
// nothing but the volume itself ends the slot.
func (r *reconciler) takeOver(set *v1alpha1.PersistentVolumeSet) {
	for i := range set.Status.Slots {
		if slot := &set.Status.Slots[i]; slot.Manager != r.filler.identity {
			slot.Manager = r.filler.identity
			r.filler.inherit(slotKey{set: set.Name, slot: slot.Name})
			convert(set, slot)
		}
	}
}
