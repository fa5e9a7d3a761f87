package volumeset

import (
	"context"
	"slices"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// withdraw gives up at most the given number of slots, the last ones first, and reports whether it gave up any. A slot
// whose volume may exist stays until a proof ends it.
func (r *reconciler) withdraw(o *round, number int) (were bool) {
	for _, slot := range slices.Backward(o.set.Status.Slots) {
		if number > 0 && r.giveUp(o, slot) {
			were, number = true, number-1
		}
	}
	return were
}

// giveUp removes a slot if it is this manager's and no request can have created its volume.
func (r *reconciler) giveUp(o *round, slot v1alpha1.VolumeSlot) bool {
	key := slotKey{set: o.set.Name, slot: slot.Name}
	if slot.Manager != r.filler.identity || o.ended[slot.Name] || !r.filler.withdraw(key) {
		return false
	}
	o.end(slot.Name)
	return true
}

// reconsider gives up the slots whose place is gone, so that their volumes are placed again. It counts the other slots
// whose volume is not expected soon. They are replaced if the maximum allows.
func (r *reconciler) reconsider(ctx context.Context, o *round) error {
	if len(o.set.Status.Slots) == 0 {
		return nil
	}
	all, err := r.places(ctx, o.class)
	if err != nil {
		return err
	}
	for _, slot := range o.set.Status.Slots {
		isNowhere := len(all) > 0 && len(slot.Segments) > 0 &&
			!slices.ContainsFunc(all, func(p place) bool { return place(slot.Segments).within(p) })
		if isNowhere && r.giveUp(o, slot) || o.ended[slot.Name] || o.census.listed[slot.Name] {
			continue
		}
		if isNowhere || r.filler.progressOf(slotKey{set: o.set.Name, slot: slot.Name}).stuck {
			o.census.stuck++
		}
	}
	return nil
}

// locate chooses the places of new volumes. A place where the driver failed gets one volume at a time, and none for a
// while after a refusal.
func (r *reconciler) locate(ctx context.Context, o *round) error {
	if o.actions.create == 0 {
		return nil
	}
	from, err := r.places(ctx, o.class)
	if err != nil {
		return err
	}
	if len(from) == 0 && r.driver.HasTopology() && len(o.class.AllowedTopologies) > 0 {
		o.problem, o.wait, o.actions.create = r.nowhere(o), lastPause, 0
		return nil
	}
	if len(from) == 0 {
		from = []place{nil} // anywhere
	}
	r.filler.keep(o.set.Name, from)
	failed, now := r.filler.failuresOf(o.set.Name), r.now()
	asked := r.asked(o)
	room := func(p place) int { return failed.room(p, now, o.actions.create, asked[p.key()]) }
	o.sites = choose(from, o.census.occupied(), o.actions.create, room)
	if pause := failed.pause(now); len(o.sites) < o.actions.create && pause > 0 {
		o.wait = pause
	}
	o.actions.create = len(o.sites)
	return nil
}

// asked returns the number of volumes being requested in each place. It omits stuck slots: otherwise a place with a
// stuck slot would never be tried again.
func (r *reconciler) asked(o *round) map[string]int {
	asked := map[string]int{}
	for _, slot := range o.set.Status.Slots {
		isStuck := r.filler.progressOf(slotKey{set: o.set.Name, slot: slot.Name}).stuck
		if !o.ended[slot.Name] && !o.census.listed[slot.Name] && !isStuck {
			asked[place(slot.Segments).key()]++
		}
	}
	return asked
}
