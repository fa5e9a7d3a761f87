package volumeset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// maxOrders is the maximum size of all orders in a set's status, in bytes. It leaves room for the template in the spec,
// its copy in kubectl's annotation, and the slots: etcd accepts objects of up to 1.5 MiB.
const maxOrders = 512 << 10

// newOrder returns the order for new volumes of a set.
func newOrder(template v1alpha1.PersistentVolumeTemplate, class v1alpha1.SlotClass) v1alpha1.VolumeOrder {
	order := v1alpha1.VolumeOrder{Template: template, Class: class}
	order.Name = orderDigest(order)
	return order
}

// orderDigest returns the name of an order: a digest of its other fields, which detects a lost field. A field added by
// a later version must be omitted from JSON while empty and must have no default in the CRD. Otherwise existing orders
// would no longer match their names.
func orderDigest(order v1alpha1.VolumeOrder) string {
	order.Name = ""
	sum := sha256.Sum256(serialized(order))
	return hex.EncodeToString(sum[:16])
}

func serialized(order v1alpha1.VolumeOrder) []byte {
	text, err := json.Marshal(order)
	if err != nil {
		panic(err) // It holds only strings and a quantity.
	}
	return text
}

// orderOf returns the order of a slot.
func orderOf(set *v1alpha1.PersistentVolumeSet, slot v1alpha1.VolumeSlot) (v1alpha1.VolumeOrder, error) {
	for _, order := range set.Status.Orders {
		if order.Name != slot.Order {
			continue
		}
		if orderDigest(order) != order.Name {
			return order, fmt.Errorf("the order %q of slot %s has lost a field or was changed, as by a manager or a"+
				" definition of another version: run the version that wrote it, or take the slot out once no volume of"+
				" its name exists", slot.Order, slot.Name)
		}
		return order, nil
	}
	return v1alpha1.VolumeOrder{},
		fmt.Errorf("the order %q of slot %s is not in the status of the PersistentVolumeSet: put it back,"+
			" or take the slot out once no volume of its name exists", slot.Order, slot.Name)
}

// addOrder adds an order to the status, unless the status has it.
func addOrder(set *v1alpha1.PersistentVolumeSet, order v1alpha1.VolumeOrder) {
	if !slices.ContainsFunc(set.Status.Orders, func(o v1alpha1.VolumeOrder) bool { return o.Name == order.Name }) {
		set.Status.Orders = append(set.Status.Orders, order)
	}
}

// tidyOrders removes the orders that no slot uses.
func tidyOrders(set *v1alpha1.PersistentVolumeSet) {
	set.Status.Orders = slices.DeleteFunc(set.Status.Orders, func(order v1alpha1.VolumeOrder) bool {
		return !slices.ContainsFunc(set.Status.Slots, func(slot v1alpha1.VolumeSlot) bool { return slot.Order == order.Name })
	})
}

// convert turns the template and class that an older manager stored in a slot into an order.
func convert(set *v1alpha1.PersistentVolumeSet, slot *v1alpha1.VolumeSlot) {
	if slot.Template == nil || slot.Class == nil {
		return
	}
	order := newOrder(*slot.Template, *slot.Class)
	addOrder(set, order)
	slot.Order, slot.Template, slot.Class = order.Name, nil, nil
}

// measure prevents new slots if their order does not fit beside the orders of the remaining slots.
func (r *reconciler) measure(o *round) {
	if o.actions.create == 0 {
		return
	}
	size := len(serialized(o.order))
	for _, order := range o.set.Status.Orders {
		isNeeded := func(slot v1alpha1.VolumeSlot) bool { return slot.Order == order.Name && !o.ended[slot.Name] }
		if order.Name != o.order.Name && slices.ContainsFunc(o.set.Status.Slots, isNeeded) {
			size += len(serialized(order))
		}
	}
	if size > maxOrders {
		o.problem = verdict{reasonTooLarge,
			fmt.Sprintf("template and class, with earlier ones whose volumes are in the making, have %d bytes, and a set has "+
				"room"+
				" for %d: shorten the template's annotations", size, maxOrders)}
		o.actions.create, o.sites = 0, nil
	}
}
