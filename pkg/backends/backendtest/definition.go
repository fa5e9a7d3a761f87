package backendtest

import (
	"fmt"
	"reflect"
	"strings"
)

// definitionChecks check the promises of backends.Definition.
func definitionChecks() []check {
	return []check{
		{"it has a name, a summary and a way to open it", definitionIsWhole},
		{"each call returns a new pointer to a struct", definitionReturnsStructs},
		{"mutable parameters and Modifier go together", func(w *world) {
			if (w.h.Definition.NewMutable != nil) != (w.f.Modify != nil) {
				w.Errorf("NewMutable is set: %t, the backend is a Modifier: %t; want both or neither",
					w.h.Definition.NewMutable != nil, w.f.Modify != nil)
			}
		}},
		{"snapshot parameters need a Snapshotter", func(w *world) {
			if w.h.Definition.NewSnapshotParameters != nil && w.f.Snapshot == nil {
				w.Errorf("NewSnapshotParameters is set, but the backend is no Snapshotter")
			}
		}},
	}
}

func definitionIsWhole(w *world) {
	d := w.h.Definition
	if d.Name == "" || d.Name != strings.ToLower(d.Name) {
		w.Errorf("the name is %q, want one in lower case, since it is part of the driver's name", d.Name)
	}
	if d.Summary == "" || strings.Contains(d.Summary, "\n") {
		w.Errorf("the summary is %q, want one line", d.Summary)
	}
	if d.NewParameters == nil || d.Open == nil {
		w.Errorf("NewParameters is set: %t, Open is set: %t; want both", d.NewParameters != nil, d.Open != nil)
	}
}

func definitionReturnsStructs(w *world) {
	d := w.h.Definition
	for name, create := range map[string]func() any{
		"NewParameters": d.NewParameters, "NewMutable": d.NewMutable,
		"NewSnapshotParameters": d.NewSnapshotParameters, "NewConfig": d.NewConfig,
	} {
		if create == nil {
			continue
		}
		one, two := reflect.ValueOf(create()), reflect.ValueOf(create())
		if one.Kind() != reflect.Pointer || one.IsNil() || one.Elem().Kind() != reflect.Struct {
			w.Errorf("%s returns %v, want a pointer to a struct", name, one)
			continue
		}
		if one.Elem().NumField() > 0 && one.Pointer() == two.Pointer() {
			w.Errorf("%s returned the same pointer twice", name)
		}
		if name != "NewConfig" && !one.Elem().IsZero() {
			w.Errorf("%s returns %s, want a zero struct: defaults belong in the tags", name, fmt.Sprint(one.Elem()))
		}
	}
}
