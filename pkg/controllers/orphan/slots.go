package orphan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// openSlots returns the slots of the driver's PersistentVolumeSets, each with the name of its set. It reads past the
// cache, and after the storage. A slot stays until its PersistentVolume is written, so the slot of each listed volume
// without one is there.
func (s *sweeper) openSlots(ctx context.Context) (map[string]string, error) {
	var list v1alpha1.PersistentVolumeSetList
	if err := s.live.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list PersistentVolumeSets, whose slots may have volumes: %w", err)
	}
	open := map[string]string{}
	for _, set := range list.Items {
		if set.Status.Driver != "" && set.Status.Driver != s.Driver.Driver() {
			continue
		}
		for _, slot := range set.Status.Slots {
			open[slot.Name] = set.Name
		}
	}
	return open, nil
}

// noteSlots notes since when each open slot has been seen, and forgets the others.
func (s *sweeper) noteSlots(open map[string]string, now time.Time) {
	for slot := range open {
		if _, known := s.slots[slot]; !known {
			s.slots[slot] = now
		}
	}
	maps.DeleteFunc(s.slots, func(slot string, _ time.Time) bool { return open[slot] == "" })
}

// withoutSlots returns the leaked volumes that no open slot can be about. It fails about the others. A slot is written
// before its volume is asked for, so a slot that is younger than the leak has another volume.
func (s *sweeper) withoutSlots(w world, due []difference) (free []difference, err error) {
	for _, d := range due {
		if slot := s.slotOf(w, d); slot == "" {
			free = append(free, d)
		} else if err == nil {
			err = fmt.Errorf("the volume %q has no PersistentVolume and is kept: it may be that of the slot %s, for which the "+
				"PersistentVolumeSet %s still has no PersistentVolume. The set's condition Ready says why", d.handle, slot,
				w.slots[slot])
		}
	}
	return free, err
}

// slotOf returns an open slot that was there when the volume was first seen leaked, or "".
func (s *sweeper) slotOf(w world, d difference) string {
	for _, slot := range slices.Sorted(maps.Keys(w.slots)) {
		if !s.slots[slot].After(s.seen[d]) {
			return slot
		}
	}
	return ""
}
