package volumeset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// maxOrders bounds what all orders of a set take in its status, in bytes. Beside them there is room for the template in
// the spec, for its copy in an annotation of kubectl, and for the slots: etcd takes 1.5 MiB for an object.
const maxOrders = 512 << 10

// newOrder is what a set's volumes are made from now.
func newOrder(template v1alpha1.PersistentVolumeTemplate, class v1alpha1.SlotClass) v1alpha1.VolumeOrder {
	order := v1alpha1.VolumeOrder{Template: template, Class: class}
	order.Name = orderDigest(order)
	return order
}

// orderDigest is the name of an order: a digest of the rest of it, so that a lost field shows. A field that a later
// version adds must be left out of JSON while it is empty, and must have no default in the definition: orders that are
// written already would no longer match their names.
func orderDigest(order v1alpha1.VolumeOrder) string {
	order.Name = ""
	sum := sha256.Sum256(serialized(order))
	return hex.EncodeToString(sum[:16])
}

func serialized(order v1alpha1.VolumeOrder) []byte {
	text, err := json.Marshal(order)
	if err != nil {
		panic(err) // It holds nothing but strings and a quantity.
	}
	return text
}

// orderOf returns what the volume of a slot is made from.
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

// addOrder adds an order to the status, once.
func addOrder(set *v1alpha1.PersistentVolumeSet, order v1alpha1.VolumeOrder) {
	if !slices.ContainsFunc(set.Status.Orders, func(o v1alpha1.VolumeOrder) bool { return o.Name == order.Name }) {
		set.Status.Orders = append(set.Status.Orders, order)
	}
}

// tidyOrders drops the orders that no slot needs.
func tidyOrders(set *v1alpha1.PersistentVolumeSet) {
	set.Status.Orders = slices.DeleteFunc(set.Status.Orders, func(order v1alpha1.VolumeOrder) bool {
		return !slices.ContainsFunc(set.Status.Slots, func(slot v1alpha1.VolumeSlot) bool { return slot.Order == order.Name })
	})
}

// convert makes an order of what a slot has from a manager before there were any.
func convert(set *v1alpha1.PersistentVolumeSet, slot *v1alpha1.VolumeSlot) {
	if slot.Template == nil || slot.Class == nil {
		return
	}
	order := newOrder(*slot.Template, *slot.Class)
	addOrder(set, order)
	slot.Order, slot.Template, slot.Class = order.Name, nil, nil
}

// measure keeps new slots from being written if their order has no room beside those of the slots that stay.
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
