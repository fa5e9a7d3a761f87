package params

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// validator is a target that checks combinations of its values.
type validator interface{ Validate() error }

// Decode fills the targets, pointers to structs, from values. Every key must belong to one of them. Parameters whose
// key is not given get their default. Then each target that has a method Validate() error is validated. When Decode
// fails, no target is changed.
//
// Kinds: Invalid, naming all errors in sorted order. A single error of Validate that has a Kind keeps it. Decode panics
// where Check would report a mistake, and on a target that is not a pointer.
func Decode(values map[string]string, targets ...any) error {
	return new(Schemas).Decode(values, targets...)
}

// Decode is the function Decode for types of targets that are used repeatedly.
func (c *Schemas) Decode(values map[string]string, targets ...any) error {
	drafts := make([]reflect.Value, len(targets))
	structs := make([]reflect.Value, len(targets))
	for i, target := range targets {
		drafts[i] = draftOf(target)
		structs[i] = drafts[i].Elem()
	}
	if err := c.of(structs).fill(structs, values); err != nil {
		return err
	}
	if err := validate(drafts); err != nil {
		return err
	}
	for i, target := range targets {
		reflect.ValueOf(target).Elem().Set(structs[i])
	}
	return nil
}

// draftOf returns a pointer to a copy of what target points to.
func draftOf(target any) reflect.Value {
	value, err := structOf(target)
	if err == nil && !value.CanSet() {
		err = fmt.Errorf("a target is %T: use a pointer to it", target)
	}
	if err != nil {
		panic("params: " + err.Error())
	}
	draft := reflect.New(value.Type())
	draft.Elem().Set(value)
	return draft
}

// fill sets every parameter of the structs. Kinds: Invalid.
func (s *schema) fill(structs []reflect.Value, values map[string]string) error {
	for _, p := range s.parameters {
		if !p.ignored() {
			p.setDefault(p.field(structs))
		}
	}
	var found problems
	given := map[*parameter]string{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		p := s.find(key)
		switch {
		case p == nil:
			found.unknownKey(key, s)
		case p.ignored():
		case given[p] != "" && !p.family:
			found.givenTwice(given[p], key)
		default:
			given[p] = key
			if !p.set(p.field(structs), key, values[key]) {
				found.badValue(key, values[key], p)
			}
		}
	}
	return found.err(s)
}

// validate calls the targets' own validation.
func validate(drafts []reflect.Value) error {
	var failures []error
	for _, draft := range drafts {
		if v, ok := draft.Interface().(validator); ok {
			failures = append(failures, v.Validate())
		}
	}
	failures = slices.DeleteFunc(failures, func(err error) bool { return err == nil })
	slices.SortStableFunc(failures, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return oneInvalid(failures)
}

// oneInvalid joins several errors into one. A single error that has a Kind stays as it is.
func oneInvalid(failures []error) error {
	if len(failures) == 0 {
		return nil
	}
	all := failures[0]
	if _, kinded := errors.AsType[*failure.Error](all); kinded && len(failures) == 1 {
		return all
	}
	for _, next := range failures[1:] {
		all = fmt.Errorf("%w; %w", all, next)
	}
	return failure.Errorf(failure.Invalid, "%w", all)
}
