package adversary

import (
	"errors"
	"fmt"
	"time"

	"github.com/stowage-csi/stowage/tests/stall"
)

// silent stops the server at a request, which f.On selects, until the end.
func (w *world) silent(f Fault) (func() error, error) {
	d := w.disks[w.setup.servedDisk()]
	end := func() error { w.isHeard(); return w.obeyed(d.server.Continue()) }
	requests := []stall.Request{stall.Read, stall.Open, stall.Attribute, stall.Write, stall.Sync}
	at := requests[f.On%len(requests)]
	err := d.server.StopAt(at, 1+f.On/len(requests))
	if err == nil {
		var came bool
		came, err = d.stops()
		w.fallsSilent(d)
		w.fellSilent(at, came)
	}
	return end, w.obeyed(err)
}

// fellSilent counts whether the selected request came.
func (w *world) fellSilent(at stall.Request, came bool) {
	how := "silent at once"
	if came {
		how = fmt.Sprint("silent at ", at)
	}
	w.note("FAULT %s", how)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally.Faults[how]++
}

// obeyed blames the test's server, and not the driver, if it does not obey.
func (w *world) obeyed(err error) error {
	if err != nil {
		w.blame("the test's own server does as it is told: %v", err)
		return errors.Join(errBlamed, err)
	}
	return nil
}

// stops waits until the server has stopped at a request, and stops it at once if the request does not come soon.
func (d *disk) stops() (came bool, err error) {
	for began := time.Now(); ; <-time.After(time.Millisecond) {
		if stopped, err := d.server.Stopped(); err != nil || stopped {
			return stopped, err
		}
		if time.Since(began) > soon {
			return false, d.server.Stop()
		}
	}
}

// cycle makes a volume come into use and go out of it as fast as possible.
func (a *actor) cycle(s Step, v *volume) {
	a.ready()
	for n := 0; a.cyclesOn(s, n); n++ {
		turn := time.Now()
		a.use(s, v, false)
		a.leave(s, v, false)
		a.turned(a.disks[a.setup.Classes[v.class].Disk], turn)
	}
}

// cyclesOn reports whether another turn follows. How long the others take to begin does not matter.
func (a *actor) cyclesOn(s Step, turns int) bool {
	return !a.failed() && !a.calm.Load() && (s.Count == 0 || turns < s.Count)
}

// silent lets raw and mounted volumes come into use and go out of it, while the server of another such volume falls
// silent: a driver that reuses a device number of the other, or waits for it, is held up. All are formatted before. The
// silence is longer than an attempt, so that calls for the silent server's volume are given up in it, and repeated.
func (d dice) silent() [][]Step {
	fault := &Fault{Kind: "silent", On: d.IntN(30), After: d.ms(500, 2000), For: d.ms(17_000, 20_000), Late: true}
	life := func(disk int, raw bool, fault *Fault) []Step {
		for class, c := range d.setup.Classes {
			if c.Disk == disk {
				return []Step{{Op: Create, Class: class, Raw: raw, MiB: 8, Fault: fault}, {Op: Use}, {Op: Write, Count: 4},
					{Op: Leave}}
			}
		}
		return nil
	}
	bad := d.setup.servedDisk()
	good := (bad + 1) % len(d.setup.Disks)
	var tracks [][]Step
	for range 3 {
		tracks = append(tracks, append(life(good, false, nil), Step{Op: Cycle}))
	}
	asking := append(life(good, true, nil), Step{Op: Cycle, Count: 1})
	for range 40 {
		asking = append(asking, Step{Op: Use}, Step{Op: Check}, Step{Op: Modify, Count: d.IntN(2)},
			Step{Op: Pause, Count: 400}, Step{Op: Leave})
	}
	return append(tracks, asking, append(life(bad, d.chance(20), fault), Step{Op: Cycle}))
}
