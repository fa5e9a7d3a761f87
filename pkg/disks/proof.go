package disks

import (
	"time"

	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// settling is how long a volume that is offered may be in use before that is told, as long as the looks after an event
// take: others look into a new disk, too, and let it go.
const settling = 3 * time.Second

// hearing is when an offer was heard of first.
type hearing struct {
	look int // the last one that had begun
	at   time.Time
}

// hear takes what is offered. Each new offer waits for a look that begins from now on. The lock is held.
func (e *Engine) hear(w report.Wanted) {
	offers, heard := map[string]string{}, map[string]hearing{}
	for _, o := range w.Offers {
		offers[o.Volume], heard[o.Volume] = o.ID, hearing{e.looks, time.Now()}
		if before, is := e.heard[o.Volume]; is && e.offers[o.Volume] == o.ID {
			heard[o.Volume] = before
		}
	}
	e.told, e.wanted, e.offers, e.heard = true, w, offers, heard
}

// prove acknowledges the offer of a volume that a look has found as it may be offered. Somebody may have begun to use
// it between the look before and the offer, and the master waits with the PersistentVolume. It reports whether it did.
// The lock is held.
func (e *Engine) prove(v *report.Volume, look int) bool {
	note, heard := e.volumes[v.Name], e.heard[v.Name]
	if note == nil || !note.Unproven || e.offers[v.Name] != note.Offer || look <= heard.look {
		return false
	}
	switch {
	case v.State == report.InUse && time.Since(heard.at) < settling:
		v.State, v.Message = report.Available, ""
	case v.State == report.Available:
		proven := &volumeNote{Offer: note.Offer, Dirty: true}
		if err := e.notes.write(volumesFolder, v.Name, proven); err != nil {
			e.options.Log.Error("an offer is not acknowledged", "volume", v.Name, "offer", note.Offer, "error", err)
			return false
		}
		e.volumes[v.Name] = proven
		v.State = report.Offered
		return true
	}
	return false
}

// isAwaited reports whether an offer waits for a look. The lock is held.
func (e *Engine) isAwaited(look int) bool {
	for _, h := range e.heard {
		if e.foundBy <= h.look && h.look < look {
			return true
		}
	}
	return false
}

// update says of a volume what is known since it was looked at: that it waits for the next look, if it was offered
// since, and else of one that was free, or counted as offered, whether it is. The lock is held.
func (e *Engine) update(v *report.Volume) {
	h := e.history(v.Name)
	_, isOffered := e.offers[v.Name]
	wasFree := v.State == report.Available || v.State == report.Offered
	switch {
	case h.Unproven && !h.Taken && isOffered && (wasFree || e.foundBy <= e.heard[v.Name].look):
		v.State, v.Message = report.Available, ""
	case !wasFree:
	case h.Unproven && !h.Taken: // It may have been offered by an earlier master, which did not wait.
		discovery.History{Dirty: true}.Known(v)
	default:
		h.Known(v)
	}
}
