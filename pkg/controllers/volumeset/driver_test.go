package volumeset

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient/csiclienttest"
)

// driver creates volumes by name. Its answers may be late or missing.
type driver struct {
	w       *world
	made    int
	volumes map[string]string // handles by name
	kept    map[string]string // handles of volumes that people keep without a PersistentVolume, by name
	late    []string          // names of volumes still being created after their call ended
	asked   map[string]bool   // names that were requested
	open    map[string]bool   // names whose volumes may exist, according to the answers so far
	full    string            // the zone without room, or allZones
}

// allZones stands for every place, including that of a driver without topology.
const allZones = "all"

func newDriver(w *world) *driver {
	return &driver{w: w, volumes: map[string]string{}, kept: map[string]string{}, asked: map[string]bool{},
		open: map[string]bool{}}
}

// isFull reports whether the place has no room for a new volume.
func (d *driver) isFull(segments map[string]string) bool {
	return d.full != "" && (d.full == allZones || segments["zone"] == d.full)
}

func (d *driver) make(name string) string {
	if d.kept[name] != "" {
		return d.kept[name]
	}
	if d.volumes[name] == "" {
		d.made++
		d.volumes[name] = fmt.Sprintf("%s#%d", name, d.made)
	}
	return d.volumes[name]
}

// carryOn creates a volume whose call has ended.
func (d *driver) carryOn() {
	if len(d.late) > 0 {
		d.w.note("the driver makes %s after all", d.late[0])
		d.make(d.late[0])
		d.late = d.late[1:]
	}
}

func (d *driver) delete(handle string) {
	for _, all := range []map[string]string{d.volumes, d.kept} {
		maps.DeleteFunc(all, func(_, there string) bool { return there == handle })
	}
}

// keep leaves a volume to a person, who has deleted its PersistentVolume.
func (d *driver) keep(handle string) {
	for name, there := range d.volumes {
		if there == handle {
			d.kept[name] = handle
			delete(d.volumes, name)
		}
	}
}

// driverOf is a manager's connection to the driver.
type driverOf struct{ m *manager }

func (d driverOf) Driver() string    { return "driver" }
func (d driverOf) HasTopology() bool { return d.m.w.zones }

func (d driverOf) Create(_ context.Context, r csiclient.Request) (v csiclient.Volume, err error) {
	w := d.m.w
	// A driver that gives proofs is the only one on its storage: a deposed manager's driver is gone.
	isGone := func() bool { return w.proves && d.m.deposed }
	if isGone() {
		return v, csiclienttest.Open()[1]
	}
	if d.m.stopped && !w.driver.asked[r.Name] && !w.taken[r.Name] {
		w.violate("A VOLUME IS BEGUN FOR NOBODY: %s asks for %s, and knows that the set wants none", d.m.name, r.Name)
	}
	if err := w.pause(); err != nil {
		return v, err
	}
	if d.m.deposed && !w.hasSlot(r.Name) {
		// Only the driver could prevent the damage of a request after such a long pause.
		d.m.w.running.dead = true
		return v, errKilled
	}
	if isGone() {
		return v, csiclienttest.Open()[1]
	}
	wasOpen := w.driver.open[r.Name]
	w.driver.asked[r.Name], w.driver.open[r.Name] = true, true
	handle, err := w.driver.answer(r)
	if w.proves && w.driver.volumes[r.Name] == "" && !slices.Contains(w.driver.late, r.Name) && isRefusal(err) {
		err = csiclienttest.Absent(err)
	}
	w.note("%s asks for %s %v: %s %v", d.m.name, r.Name, r.Segments, handle, err)
	if killed := w.pause(); killed != nil {
		return v, killed
	}
	w.driver.open[r.Name] = wasOpen || !isRefusal(err)
	v = csiclient.Volume{Handle: handle, SizeBytes: r.SizeBytes}
	if len(r.Segments) > 0 {
		v.Places = []map[string]string{r.Segments}
	}
	return v, err
}

// isRefusal reports whether an answer proves that no volume exists, unless an earlier request created it.
func isRefusal(err error) bool {
	return slices.ContainsFunc(csiclienttest.Refusals(),
		func(other error) bool { return fmt.Sprint(other) == fmt.Sprint(err) })
}

// answer draws the outcome of a request.
func (d *driver) answer(r csiclient.Request) (handle string, err error) {
	w, name := d.w, r.Name
	pick := func(from []error) error { return from[w.IntN(len(from))] }
	outcome := w.IntN(12)
	switch {
	case slices.Contains(d.late, name):
		return "", csiclienttest.Busy()
	case d.volumes[name] == "" && d.isFull(r.Segments) && (w.calm || w.mild || outcome < 9):
		return "", csiclienttest.Full()
	case w.calm || w.mild || outcome < 6:
		return d.make(name), nil
	case outcome == 6:
		d.make(name)
		return "", pick(csiclienttest.Open())
	case outcome == 7:
		if d.volumes[name] == "" {
			d.late = append(d.late, name)
		}
		return "", pick(csiclienttest.Open())
	case outcome == 8:
		return "", pick(csiclienttest.Open())
	}
	return "", pick(csiclienttest.Refusals())
}

func (d driverOf) Delete(_ context.Context, handle string) error {
	w := d.m.w
	if err := w.pause(); err != nil {
		return err
	}
	for _, v := range w.api.volumes() {
		if v.Spec.CSI != nil && v.Spec.CSI.VolumeHandle == handle {
			w.mustBeUnbound(v)
		}
	}
	outcome := w.IntN(6)
	if w.calm {
		outcome = 5
	}
	if outcome > 0 {
		w.driver.delete(handle)
	}
	w.note("%s deletes %s: %d", d.m.name, handle, outcome)
	if err := w.pause(); err != nil {
		return err
	}
	if outcome < 2 {
		return csiclienttest.Open()[0]
	}
	return nil
}
