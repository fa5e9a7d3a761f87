package params

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// schema is all the parameters of some targets, in the order of their fields.
type schema struct {
	parameters []*parameter
	mistakes   []string // what is wrong with the tags; a schema with mistakes is not used
}

// Check tells what is wrong with the tags of targets, which are structs or pointers to structs that are
// decoded together: an unsupported type, a default that is not allowed, a key that is used twice. Decode
// panics on what Check reports; the tests of whoever declares parameters call it. The error has no Kind.
func Check(targets ...any) error {
	s := &schema{}
	for _, target := range targets {
		value, err := structOf(target)
		if err != nil {
			s.mistakes = append(s.mistakes, err.Error())
			continue
		}
		read := reading(value.Type())
		s.parameters, s.mistakes = append(s.parameters, read.parameters...), append(s.mistakes, read.mistakes...)
	}
	return s.check()
}

// Schemas remembers the tags of the types that it has met: reading them takes longer than all the rest. The zero value is ready.
type Schemas struct{ known sync.Map } // *schema, by reflect.Type; its parameters have fields of a struct that nobody uses

// of is the schema of structs that can be set. It panics when there is a mistake in their tags.
func (c *Schemas) of(structs ...reflect.Value) *schema {
	s := &schema{}
	for _, value := range structs {
		read := c.read(value.Type())
		s.mistakes = append(s.mistakes, read.mistakes...)
		bound := make([]parameter, len(read.parameters))
		for i, p := range read.parameters {
			bound[i] = *p
			bound[i].field = value.FieldByIndex(p.index)
			s.parameters = append(s.parameters, &bound[i])
		}
	}
	if err := s.check(); err != nil {
		panic(err.Error())
	}
	return s
}

func (c *Schemas) read(t reflect.Type) *schema {
	if known, ok := c.known.Load(t); ok {
		read, _ := known.(*schema)
		return read
	}
	read := reading(t)
	c.known.Store(t, read)
	return read
}

// reading reads the tags of a type.
func reading(t reflect.Type) *schema {
	s := &schema{}
	s.walk(reflect.New(t).Elem(), nil)
	return s
}

// check reports the mistakes, with keys that are used twice among them.
func (s *schema) check() error {
	users := map[string]bool{}
	for _, p := range s.parameters {
		for _, key := range p.keys {
			if users[key] {
				s.mistakes = append(s.mistakes, fmt.Sprintf("the key %q is used twice", key))
			}
			users[key] = true
		}
	}
	if len(s.mistakes) == 0 {
		return nil
	}
	return errors.New("params: " + strings.Join(s.mistakes, "; "))
}

// walk adds the parameters of a struct, which is at the index in the outermost one.
func (s *schema) walk(value reflect.Value, at []int) {
	for i := range value.NumField() {
		index := append(slices.Clone(at), i)
		description := value.Type().Field(i)
		key, tagged := description.Tag.Lookup("param")
		switch {
		case tagged && key == "-":
		case tagged:
			s.add(value.Type(), description, value.Field(i), index)
		case description.Anonymous && description.Type.Kind() == reflect.Struct:
			s.walk(value.Field(i), index)
		default:
			s.refuseStray(value.Type(), description)
		}
	}
}

func (s *schema) add(owner reflect.Type, description reflect.StructField, field reflect.Value, index []int) {
	p, err := newParameter(description, field)
	if err != nil {
		s.mistake(owner, description, err.Error())
		return
	}
	p.index = index
	s.parameters = append(s.parameters, p)
}

// refuseStray finds fields that were meant to be parameters and would be passed over.
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
