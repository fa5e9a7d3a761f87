package params

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// schema has all parameters of some structs, in the order of their fields. Calls share it, and use their own structs.
type schema struct {
	parameters []*parameter
	byKey      map[string]*parameter // aliases included
	mistakes   []string              // errors in the tags; a schema with mistakes is not used
}

// Check reports errors in the tags of targets, which are structs or pointers to structs that are decoded together: an
// unsupported type, a default that is not allowed, a key that is used twice. Decode panics on these errors, so packages
// that declare parameters call Check in their tests. The error has no Kind.
func Check(targets ...any) error {
	var types []reflect.Type
	var mistakes []string
	for _, target := range targets {
		value, err := structOf(target)
		if err != nil {
			mistakes = append(mistakes, err.Error())
			continue
		}
		types = append(types, value.Type())
	}
	s := reading(types)
	s.mistakes = append(mistakes, s.mistakes...)
	return s.check()
}

// Schemas caches the tags of types: reading them takes longer than everything else. The zero value is ready for use.
type Schemas struct{ known sync.Map } // *schema, by combination

// combination has the types of structs that are decoded or encoded together: at most four.
type combination [4]reflect.Type

// of returns the schema of structs. It panics if there is an error in their tags.
func (c *Schemas) of(structs []reflect.Value) *schema {
	var types combination
	for i, value := range structs { // a fifth is a programmer's error, and panics at once
		types[i] = value.Type()
	}
	if known, ok := c.known.Load(types); ok {
		read, _ := known.(*schema)
		return read
	}
	s := reading(types[:len(structs)])
	if err := s.check(); err != nil {
		panic(err.Error())
	}
	c.known.Store(types, s)
	return s
}

// reading reads the tags of types.
func reading(types []reflect.Type) *schema {
	s := &schema{byKey: map[string]*parameter{}}
	for owner, t := range types {
		s.walk(t, owner, nil)
	}
	return s
}

// check reports the mistakes.
func (s *schema) check() error {
	if len(s.mistakes) == 0 {
		return nil
	}
	return errors.New("params: " + strings.Join(s.mistakes, "; "))
}

// walk adds the parameters of a struct at an index within the outermost struct number owner.
func (s *schema) walk(t reflect.Type, owner int, at []int) {
	for i := range t.NumField() {
		index := append(slices.Clone(at), i)
		description := t.Field(i)
		key, tagged := description.Tag.Lookup("param")
		switch {
		case tagged && key == "-":
		case tagged:
			s.add(t, description, owner, index)
		case description.Anonymous && description.Type.Kind() == reflect.Struct:
			s.walk(description.Type, owner, index)
		default:
			s.refuseStray(t, description)
		}
	}
}

func (s *schema) add(t reflect.Type, description reflect.StructField, owner int, index []int) {
	p, err := newParameter(description)
	if err != nil {
		s.mistake(t, description, err.Error())
		return
	}
	p.owner, p.index = owner, index
	s.parameters = append(s.parameters, p)
	for _, key := range p.keys {
		if s.byKey[key] != nil {
			s.mistakes = append(s.mistakes, fmt.Sprintf("the key %q is used twice", key))
		}
		s.byKey[key] = p
	}
}

// find returns the parameter of a key: the one with that key, or else the family that the key belongs to. It returns
// nil if there is none.
func (s *schema) find(key string) *parameter {
	if p := s.byKey[key]; p != nil {
		return p
	}
	for _, p := range s.parameters {
		if end, ok := strings.CutPrefix(key, p.beginning()); p.family && ok && end != "" {
			return p
		}
	}
	return nil
}

// refuseStray finds fields that were meant to be parameters, but would be ignored.
func (s *schema) refuseStray(owner reflect.Type, description reflect.StructField) {
	if description.Anonymous && description.Type.Kind() == reflect.Pointer {
		s.mistake(owner, description, "embed the struct itself, not a pointer to it")
	}
	for _, name := range []string{"default", "enum", "min", "max", "alias"} {
		if _, has := description.Tag.Lookup(name); has {
			s.mistake(owner, description, fmt.Sprintf("there is a tag %q and no tag %q", name, "param"))
		}
	}
}

func (s *schema) mistake(owner reflect.Type, description reflect.StructField, text string) {
	s.mistakes = append(s.mistakes, fmt.Sprintf("field %s of %s: %s", description.Name, owner, text))
}

// structOf returns the struct that target is or points to.
func structOf(target any) (reflect.Value, error) {
	value := reflect.ValueOf(target)
	if value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		return reflect.Value{}, fmt.Errorf("a target is %T: use a pointer to a struct, and not nil", target)
	}
	return value, nil
}
