package volumeset

import (
	"context"
	"fmt"
	"slices"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient/csiclienttest"
)

// driver makes volumes of names, answers late, and not always.
type driver struct {
	w       *world
	made    int
	volumes map[string]string // handles by name
	late    []string          // names of volumes that are being made, though nobody waits for it
}

func (d *driver) make(name string) string {
	if d.volumes[name] == "" {
		d.made++
		d.volumes[name] = fmt.Sprintf("%s#%d", name, d.made)
	}
	return d.volumes[name]
}

// carryOn makes a volume whose request has been given up.
func (d *driver) carryOn() {
	if len(d.late) > 0 {
		d.w.note("the driver makes %s after all", d.late[0])
		d.make(d.late[0])
		d.late = d.late[1:]
	}
}

func (d *driver) delete(handle string) {
	for name, there := range d.volumes {
		if there == handle {
			delete(d.volumes, name)
		}
	}
}

// driverOf is the driver as a manager reaches it.
type driverOf struct{ m *manager }

func (d driverOf) Driver() string    { return "driver" }
func (d driverOf) HasTopology() bool { return false }

func (d driverOf) Create(_ context.Context, r csiclient.Request) (v csiclient.Volume, err error) {
	w := d.m.w
	if err := w.pause(); err != nil {
		return v, err
	}
	if d.m.deposed && !w.hasSlot(r.Name) {
		d.m.w.running.dead = true // Who sleeps that long, and then asks, does harm that nothing but the driver could keep it from.
		return v, errKilled
	}
	handle, err := w.driver.answer(r.Name)
	w.note("%s asks for %s: %s %v", d.m.name, r.Name, handle, err)
	if killed := w.pause(); killed != nil {
		return v, killed
	}
	return csiclient.Volume{Handle: handle, SizeBytes: r.SizeBytes}, err
}

// answer draws what becomes of a request.
func (d *driver) answer(name string) (handle string, err error) {
	w := d.w
	pick := func(from []error) error { return from[w.IntN(len(from))] }
	outcome := w.IntN(12)
	switch {
	case slices.Contains(d.late, name):
		return "", csiclienttest.Busy()
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
