package backendtest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// createChecks check the promises of Backend.Create beyond those for all things.
func createChecks() []check {
	return []check{
		{"a volume is what its spec asks for", volumeMeetsSpec},
		{"a capacity range is met or OutOfRange", capacityRanges},
		{"a device is large enough for its filesystem", leastDevice},
		{"a volume that cannot be used as asked is Invalid", impossibleAccess},
		{"what is returned belongs to the caller", returnedIsACopy},
		{"all methods can be called at once", allAtOnce},
	}
}

func volumeMeetsSpec(w *world) {
	spec := w.spec("one")
	v, err := w.c.Create(w.ctx(), spec)
	w.must("Create", err)
	w.meets(v, spec)
	if v.Source != (backends.ContentSource{}) {
		w.Errorf("the source of an empty volume is %+v, want none", v.Source)
	}
	if len(v.PublishedNodes) != 0 {
		w.Errorf("a new volume is published to %q", v.PublishedNodes)
	}
	w.holdsAs(w.contentTypes(v), "a new volume", v.Handle, "")
}

// meets checks that a volume matches its spec.
func (w *world) meets(v *backends.Volume, spec backends.Spec) {
	w.Helper()
	if v.Name != spec.Name || v.Fingerprint != spec.Fingerprint {
		w.Errorf("the volume has the name %q and the fingerprint %q, want %q and %q", v.Name, v.Fingerprint, spec.Name,
			spec.Fingerprint)
	}
	if !maps.Equal(v.Settings, spec.Settings) {
		w.Errorf("the volume has the settings %v, want %v", v.Settings, spec.Settings)
	}
	if v.CapacityBytes <= 0 || !spec.Capacity.Contains(v.CapacityBytes) {
		w.Errorf("the volume has %d bytes, want %s", v.CapacityBytes, spec.Capacity)
	}
	if err := v.Access.Check(spec.Access); err != nil {
		w.Errorf("the volume cannot be used as the spec asks: %v", err)
	}
	for key, value := range v.Attributes {
		w.shown("an attribute", key+"="+value)
	}
	w.reachable(v.Topology)
}

func capacityRanges(w *world) {
	usual := w.volume("usual").CapacityBytes
	none := []backends.Kind{}
	for i, row := range []struct {
		name  string
		size  backends.CapacityRange
		fails []backends.Kind // empty if the volume must be created
	}{
		{"anything", backends.CapacityRange{}, none},
		{"exactly a size that there is", backends.CapacityRange{RequiredBytes: usual, LimitBytes: usual}, none},
		{"at most a size that there is", backends.CapacityRange{LimitBytes: usual}, none},
		{"at most a little more", backends.CapacityRange{LimitBytes: usual + 1}, none},
		{"at most less than what is required", backends.CapacityRange{RequiredBytes: usual, LimitBytes: usual - 1},
			[]backends.Kind{backends.OutOfRange}},
		{"more than can be counted", backends.CapacityRange{RequiredBytes: math.MaxInt64},
			[]backends.Kind{backends.OutOfRange, backends.Exhausted}},
		{"nearly more than can be counted", backends.CapacityRange{RequiredBytes: math.MaxInt64 - 4096},
			[]backends.Kind{backends.OutOfRange, backends.Exhausted}},
	} {
		spec := w.spec(fmt.Sprint("volume ", i))
		spec.Capacity = row.size
		v, err := w.c.Create(w.ctx(), spec)
		if len(row.fails) == 0 {
			w.must(row.name, err)
			w.meets(v, spec)
			w.must("Delete", w.c.Delete(w.ctx(), v.Handle))
			continue
		}
		w.fails(row.name, err, row.fails...)
		_, err = w.c.Find(w.ctx(), spec)
		w.fails(row.name+": finding it then", err, backends.NotFound)
	}
	w.tinyVolume()
}

// tinyVolume requests a volume that most storage cannot create, but some can.
func (w *world) tinyVolume() {
	w.Helper()
	spec := w.spec("tiny")
	spec.Capacity = backends.CapacityRange{LimitBytes: 1}
	v, err := w.c.Create(w.ctx(), spec)
	if err != nil {
		w.fails("at most one byte", err, backends.OutOfRange)
		return
	}
	w.meets(v, spec)
}

// leastDevice requests less than the filesystem on the volume needs, in case the volume is a device.
func leastDevice(w *world) {
	spec := w.spec("for a large filesystem")
	if !slices.Contains(spec.Access.Types, backends.Mount) {
		return // no filesystem is made on it
	}
	usual := w.volume("usual").CapacityBytes
	spec.Access.Types = []backends.AccessType{backends.Mount}
	spec.Capacity, spec.LeastDeviceBytes = backends.CapacityRange{RequiredBytes: 1}, 2*usual
	v, err := w.c.Create(w.ctx(), spec)
	w.must("Create", err)
	source, err := w.n.Source(w.ctx(), w.attach(v, backends.Mount))
	w.must("Source", err)
	w.leave(v.Handle)
	if _, device := source.(backends.Device); !device {
		return // it may ignore the size
	}
	if v.CapacityBytes < spec.LeastDeviceBytes {
		w.Errorf("the device has %d bytes, and its filesystem needs %d", v.CapacityBytes, spec.LeastDeviceBytes)
	}
	spec.Name, spec.Capacity = "too small for it", backends.CapacityRange{LimitBytes: usual}
	_, err = w.c.Create(w.ctx(), spec)
	w.fails("a device that may not be large enough", err, backends.OutOfRange)
}

func impossibleAccess(w *world) {
	spec := w.spec("one")
	spec.Access.Types = []backends.AccessType{"tape"}
	_, err := w.c.Create(w.ctx(), spec)
	w.fails("a volume of an access type that does not exist", err, backends.Invalid)
	spec = w.spec("one")
	spec.Access.Modes = []backends.AccessMode{"NO_NODE_WRITER"}
	_, err = w.c.Create(w.ctx(), spec)
	w.fails("a volume in an access mode that does not exist", err, backends.Invalid)
	for _, m := range impossibleMountings() {
		spec = w.spec("one")
		spec.Access.Types, spec.Access.Mountings = []backends.AccessType{backends.Mount}, []backends.Mounting{m}
		_, err = w.c.Create(w.ctx(), spec)
		w.fails(fmt.Sprintf("a volume that is to be mounted as %+v", m), err, backends.Invalid)
	}
	_, err = w.c.Find(w.ctx(), w.spec("one"))
	w.fails("finding it then", err, backends.NotFound)
	v, err := w.c.Create(w.ctx(), w.spec("one"))
	w.must("Create", err)
	for _, m := range impossibleMountings() {
		w.fails(fmt.Sprintf("its use, mounted as %+v", m), v.Access.Check(backends.Access{Mountings: []backends.Mounting{m}}),
			backends.Invalid)
	}
	w.must("Check of its use, mounted without a word", v.Access.Check(backends.Access{Mountings: []backends.Mounting{{}}}))
}

// impossibleMountings are impossible for any volume: filesystems that no node has, and options that would mount
// something else.
func impossibleMountings() []backends.Mounting {
	return []backends.Mounting{
		{Filesystem: "ntfs"}, {Filesystem: "../x"}, {Filesystem: "ext4\x00"},
		{Options: []string{"bind"}}, {Options: []string{"ro,rw"}}, {Options: []string{"logdev=/dev/sda"}},
		{Options: []string{"addr=192.0.2.1"}},
	}
}

// returnedIsACopy overwrites returned values and checks that the backend does not change.
func returnedIsACopy(w *world) {
	handle := w.volume("one").Handle
	// As text, because a shared volume would be overwritten, too.
	want := fmt.Sprintf("%+v", *w.get(handle))
	scribble(w.get(handle))
	found, err := w.c.Find(w.ctx(), w.spec("one"))
	w.must("Find", err)
	scribble(found)
	if have := fmt.Sprintf("%+v", *w.get(handle)); have != want {
		w.Errorf("after changes to what Get and Find returned, the volume is\n%s\nwant\n%s", have, want)
	}
}

func scribble(v *backends.Volume) {
	for key := range v.Attributes {
		v.Attributes[key] = "scribbled"
	}
	for key := range v.Settings {
		v.Settings[key] = "scribbled"
	}
	for _, place := range v.Topology {
		for key := range place {
			place[key] = "scribbled"
		}
	}
	for i := range v.Access.Types {
		v.Access.Types[i] = "scribbled"
	}
	for i := range v.Access.Modes {
		v.Access.Modes[i] = "scribbled"
	}
	for i := range v.PublishedNodes {
		v.PublishedNodes[i] = "scribbled"
	}
}

// notAttached returns the Kinds with which Source may fail for an existing volume: Invalid for an attachment that lacks
// what Attach returns.
func (w *world) notAttached() []backends.Kind {
	kinds := []backends.Kind{backends.Busy, backends.Unavailable}
	if w.f.Attach != nil {
		kinds = append(kinds, backends.Invalid)
	}
	return kinds
}

// allAtOnce makes all calls that the backend supports from several goroutines, for one volume. It is for the race
// detector, and for locks that are never released.
func allAtOnce(w *world) {
	v := w.volume("one")
	works := w.works(v)
	beside := []backends.Kind{backends.Exists, backends.InUse, backends.Busy, backends.Unavailable}
	w.eachOf(4, func(int) {
		for _, name := range w.f.Names() {
			if err := works[name](); err != nil {
				w.fails(name+" beside others", err, beside...)
			}
		}
		if _, err := w.c.Get(w.ctx(), v.Handle); err != nil {
			w.fails("Get beside others", err, backends.Busy, backends.Unavailable)
		}
		if _, err := w.n.Source(w.ctx(),
			backends.Attachment{Handle: v.Handle, Type: w.spec("one").Access.Types[0]}); err != nil {
			w.fails("Source beside others", err, w.notAttached()...)
		}
	})
	w.leave(v.Handle)
	for _, name := range w.f.Names() {
		err := w.settled(name+" afterwards", func(context.Context) error { return works[name]() })
		if err != nil {
			w.fails(name+" afterwards", err, backends.Exists)
		}
	}
}
