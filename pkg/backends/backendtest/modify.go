package backendtest

import (
	"context"
	"fmt"
	"reflect"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// modifyChecks check the promises of Modifier.
func modifyChecks() []check {
	return []check{
		{"what a value sets is seen, in use and again", modifySets},
		{"what a value leaves out stays", modifyLeaves},
		{"a volume can be created with it", createModified},
		{"a volume is grown and modified at the same time", modifyWhileGrowing},
		{"a value of another type is Invalid and nothing changes", modifyInvalid},
	}
}

// is checks that the volume has the modification.
func (w *world) is(handle string, m Modification) {
	w.Helper()
	if m.Seen != nil && !m.Seen(w.TB, w.instance, handle) {
		w.Errorf("the volume is not as %s asks", describe(m.Value))
	}
}

// describe renders a struct behind a pointer, with its own pointers dereferenced.
func describe(value any) string {
	text := ""
	fields := reflect.Indirect(reflect.ValueOf(value))
	for i := range fields.NumField() {
		if field := fields.Field(i); field.Kind() != reflect.Pointer || !field.IsNil() {
			text += fmt.Sprintf(" %s=%v", fields.Type().Field(i).Name, reflect.Indirect(field))
		}
	}
	return fmt.Sprintf("%T{%s }", value, text)
}

func modifySets(w *world) {
	v := w.volume("one")
	attachment := w.attach(v, w.spec("one").Access.Types[0])
	_, err := w.n.Source(w.ctx(), attachment)
	w.must("Source", err)
	for _, m := range w.h.Modifications {
		for range 2 {
			w.must("Modify to "+describe(m.Value), w.f.Modify.Modify(w.ctx(), v.Handle, m.Value))
			w.is(v.Handle, m)
		}
	}
	w.leave(v.Handle)
	for _, m := range w.h.Modifications {
		w.must("Modify to "+describe(m.Value), w.f.Modify.Modify(w.ctx(), v.Handle, m.Value))
		w.is(v.Handle, m)
		w.leave(v.Handle)
	}
}

func modifyLeaves(w *world) {
	v := w.volume("one")
	for _, m := range w.h.Modifications {
		w.must("Modify", w.f.Modify.Modify(w.ctx(), v.Handle, m.Value))
		before := w.get(v.Handle)
		w.must("Modify to nothing", w.f.Modify.Modify(w.ctx(), v.Handle, w.h.Definition.NewMutable()))
		w.is(v.Handle, m)
		w.leave(v.Handle)
		if after := w.get(v.Handle); !reflect.DeepEqual(after, before) {
			w.Errorf("after Modify to nothing the volume is\n%+v\nwant\n%+v", after, before)
		}
	}
}

func modifyWhileGrowing(w *world) {
	if w.f.Expand == nil {
		return
	}
	v := w.volume("one")
	size := v.CapacityBytes
	for _, m := range w.h.Modifications {
		size += v.CapacityBytes
		grown := make(chan error)
		go func() {
			grown <- w.settled("Expand", func(ctx context.Context) error {
				_, err := w.f.Expand.Expand(ctx, v.Handle, backends.CapacityRange{RequiredBytes: size})
				return err
			})
		}()
		w.must("Modify to "+describe(m.Value), w.settled("Modify",
			func(ctx context.Context) error { return w.f.Modify.Modify(ctx, v.Handle, m.Value) }))
		w.must("Expand meanwhile", <-grown)
		w.is(v.Handle, m)
		if have := w.get(v.Handle).CapacityBytes; have < size {
			w.Errorf("the volume has %d bytes, want %d", have, size)
		}
	}
}

func createModified(w *world) {
	for i, m := range w.h.Modifications {
		spec := w.spec(fmt.Sprint("volume ", i))
		spec.Mutable = m.Value
		v, err := w.c.Create(w.ctx(), spec)
		w.must("Create with "+describe(m.Value), err)
		w.meets(v, spec)
		w.is(v.Handle, m)
	}
}

func modifyInvalid(w *world) {
	v := w.volume("one")
	before := w.get(v.Handle)
	w.fails("Modify with a value of another type", w.f.Modify.Modify(w.ctx(), v.Handle, struct{}{}), backends.Invalid)
	if after := w.get(v.Handle); !reflect.DeepEqual(after, before) {
		w.Errorf("after that the volume is\n%+v\nwant\n%+v", after, before)
	}
}
