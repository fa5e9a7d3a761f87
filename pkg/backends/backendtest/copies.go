package backendtest

import (
	"context"
	"fmt"
	"reflect"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// fill creates a volume with the contents of a source.
type fill func(ctx context.Context, spec backends.Spec, source string) (*backends.Volume, error)

// filled calls fill, which must succeed.
func (w *world) filled(fill fill, name, source string) *backends.Volume {
	w.Helper()
	v, err := fill(w.ctx(), w.spec(name), source)
	if err != nil || v == nil {
		w.Fatalf("making %q of %q: got %v, %v; want a volume", name, source, v, err)
	}
	return v
}

// filledMeets checks a volume that was filled from a source of size bytes.
func (w *world) filledMeets(fill fill, source string, size int64, content backends.ContentSource) {
	w.Helper()
	for name, capacity := range map[string]backends.CapacityRange{
		"of no size":     {},
		"of that size":   {RequiredBytes: size},
		"of a limit":     {LimitBytes: 4 * size},
		"of double size": {RequiredBytes: 2 * size},
	} {
		spec := w.spec(name)
		spec.Capacity = capacity
		v, err := fill(w.ctx(), spec, source)
		w.must("a volume "+name, err)
		w.meets(v, spec)
		if v.Source != content {
			w.Errorf("the volume's source is %+v, want %+v", v.Source, content)
		}
		if v.CapacityBytes < size {
			w.Errorf("a volume %s has %d bytes, want at least the %d of its source", name, v.CapacityBytes, size)
		}
		if found := w.get(v.Handle); !reflect.DeepEqual(found, v) {
			w.Errorf("the volume is found as\n%+v\nwant\n%+v", found, v)
		}
	}
}

// refusesSmaller checks that a volume with a limit below the source's size is refused. With a smaller required size and
// no limit, the volume must be as large as its source.
func (w *world) refusesSmaller(fill fill, source string, size int64) {
	w.Helper()
	for _, capacity := range []backends.CapacityRange{
		{LimitBytes: size - 1}, {LimitBytes: 1}, {RequiredBytes: 1, LimitBytes: size - 1},
	} {
		spec := w.spec("too small")
		spec.Capacity = capacity
		_, err := fill(w.ctx(), spec, source)
		w.fails(fmt.Sprintf("a volume of %s for %d bytes", capacity, size), err, backends.OutOfRange)
	}
	spec := w.spec("made larger")
	spec.Capacity = backends.CapacityRange{RequiredBytes: 1}
	if v, err := fill(w.ctx(), spec, source); err != nil {
		w.Errorf("a volume of at least one byte: %v", err)
	} else if v.CapacityBytes < size {
		w.Errorf("a volume has %d bytes, want at least the %d of its source", v.CapacityBytes, size)
	}
	_, err := w.c.Find(w.ctx(), w.spec("too small"))
	w.fails("finding it then", err, backends.NotFound)
}

// impossibleFill checks that a copy is refused for the same reasons as in Create.
func (w *world) impossibleFill(fill fill, source string) {
	w.Helper()
	spec := w.spec("one")
	spec.Access.Types = []backends.AccessType{"tape"}
	_, err := fill(w.ctx(), spec, source)
	w.fails("a copy of an access type that does not exist", err, backends.Invalid)
	_, err = w.c.Find(w.ctx(), w.spec("one"))
	w.fails("finding it then", err, backends.NotFound)
}
