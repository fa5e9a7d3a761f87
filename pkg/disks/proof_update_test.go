package disks

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// TestUpdate checks the reported state of a volume between two looks.
func TestUpdate(t *testing.T) {
	const name, id = "disk-1", "local-1"
	unproven := &volumeNote{Offer: id, Dirty: true, Unproven: true}
	for what, c := range map[string]struct {
		note    *volumeNote
		offered bool
		foundBy int // 2 is after the offer was received
		state   string
		want    string
	}{
		"free, and never offered":                      {nil, false, 1, report.Available, report.Available},
		"free, and offered since":                      {unproven, true, 1, report.Available, report.Available},
		"in use, and offered since":                    {unproven, true, 1, report.InUse, report.Available},
		"in use, and looked at since the offer":        {unproven, true, 2, report.InUse, report.InUse},
		"offered, as far as it was known at the start": {unproven, true, 1, report.Offered, report.Available},
		"free, and the offer was withdrawn":            {unproven, false, 2, report.Available, report.Dirty},
		"in use, and the offer was withdrawn":          {unproven, false, 2, report.InUse, report.InUse},
		"free, and proven": {&volumeNote{Offer: id, Dirty: true}, true, 1, report.Available,
			report.Offered},
		"proven, and the offer was lost": {&volumeNote{Offer: id, Dirty: true}, false, 1, report.Available,
			report.Dirty},
		"dirty before it was offered": {&volumeNote{Offer: id, Dirty: true, Unproven: true, DirtyBefore: true}, true, 2,
			report.Dirty, report.Dirty},
	} {
		e := &Engine{told: true, foundBy: c.foundBy, volumes: map[string]*volumeNote{}, offers: map[string]string{},
			heard: map[string]hearing{}}
		if c.note != nil {
			e.volumes[name] = c.note
		}
		if c.offered {
			e.offers[name], e.heard[name] = id, hearing{look: 1}
		}
		v := report.Volume{Name: name, State: c.state}
		if e.update(&v); v.State != c.want {
			t.Errorf("%s: it is listed as %s, want %s", what, v.State, c.want)
		}
	}
}
