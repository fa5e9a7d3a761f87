package disks

import (
	"time"

	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// settling is how long an offered volume may be in use before that is reported. It is as long as the looks after an
// event take: other programs also open a new disk, and close it again.
const settling = 3 * time.Second

// hearing is when an offer was first received.
type hearing struct {
	look int // the last look that had begun
	at   time.Time
}

// hear takes the offers. Each new offer waits for a look that begins later. The lock is held.
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

// prove acknowledges the offer of a volume if a look found that it may be offered. A use of the volume may have begun
// between the previous look and the offer, and the master creates the PersistentVolume only after the acknowledgement.
// prove reports whether it acknowledged the offer. The lock is held.
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

// proven returns the last offer that was acknowledged, if no wipe has begun since: the data of its user are still
// there. No later offer has got as far, since none is acknowledged before a wipe. No offer's ID is given again.
func (n *volumeNote) proven() string {
	if n.Dirty && !n.Unproven && !n.Cut {
		return n.Offer
	}
	return n.Proven
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

// update applies to a volume what is known since it was examined. If it was offered since, it waits for the next look.
// If it was free, or counted as offered, update sets whether it is offered. The lock is held.
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
