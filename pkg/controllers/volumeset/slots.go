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
	// reserved is the prefix of class parameters for the sidecars. They are not passed to the driver.
	reserved = "csi.storage.k8s.io/"
	// fsTypeParameter is the class parameter for the filesystem type.
	fsTypeParameter = reserved + "fstype"
)

// slotClass returns the fields of a StorageClass that a volume depends on.
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

// newName returns a unique name.
func newName() string { return "pvs-" + uuid.NewString() }

// newSlot returns a slot of this manager in the place.
func (r *reconciler) newSlot(o *round, where place) v1alpha1.VolumeSlot {
	return v1alpha1.VolumeSlot{Name: r.name(), Manager: r.filler.identity, Order: o.order.Name, Segments: where}
}

// takeOver takes over the slots of other managers. Their requests are not known, so only the volume itself or a proof
// of its absence ends such a slot.
func (r *reconciler) takeOver(set *v1alpha1.PersistentVolumeSet) {
	for i := range set.Status.Slots {
		if slot := &set.Status.Slots[i]; slot.Manager != r.filler.identity {
			slot.Manager = r.filler.identity
			r.filler.inherit(slotKey{set: set.Name, slot: slot.Name})
			convert(set, slot)
		}
	}
}
