package params

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// newParameter reads the tags of a field. Its errors are programming errors.
func newParameter(description reflect.StructField) (*parameter, error) {
	tag := description.Tag
	p := &parameter{key: tag.Get("param"), doc: tag.Get("doc"), typ: description.Type}
	p.keys = append([]string{p.key}, split(tag.Get("alias"))...)
	if slices.Contains(p.keys, "") {
		return nil, errors.New("a key is empty")
	}
	p.family = strings.HasSuffix(p.key, anything)
	if p.family && len(p.keys) > 1 {
		return nil, errors.New("a family of keys has no alias")
	}
	if description.Name == "_" {
		return p, onlyDoc(tag)
	}
	if !description.IsExported() {
		return nil, errors.New("a parameter's field must be exported, or be named _ to be ignored")
	}
	if err := p.setType(description.Type); err != nil {
		return nil, err
	}
	return p, errors.Join(p.setEnum(tag.Get("enum")), p.setRange(tag), p.setInitial(tag.Get("default")))
}

// split splits a tag at each "|"; an empty tag has no parts.
func split(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, "|")
}

// onlyDoc refuses tags that have no meaning for an ignored key.
func onlyDoc(tag reflect.StructTag) error {
	for _, name := range []string{"default", "enum", "min", "max"} {
		if _, has := tag.Lookup(name); has {
			return fmt.Errorf("a key that is ignored has no %s", name)
		}
	}
	return nil
}

// anything ends the key of a family, and stands for the end of each of its keys.
const anything = "*"

func (p *parameter) setType(t reflect.Type) error {
	if p.family != (t == reflect.TypeFor[map[string]string]()) {
		return fmt.Errorf("a map[string]string is for a key that ends with %q, and such a key for nothing else", anything)
	}
	p.pointer = t.Kind() == reflect.Pointer
	elem := t
	if p.pointer || p.family {
		elem = t.Elem()
	}
	found, ok := codecOf(elem)
	if !ok {
		return fmt.Errorf("type %s is not supported: use string, bool, int, int64, params.Size, params.Duration, []string "+
			"or a pointer to one of them", t)
	}
	p.codec = found
	return nil
}

// setEnum reads the enum, and stores each value in canonical form.
func (p *parameter) setEnum(tag string) error {
	entries := split(tag)
	if _, isBool := p.codec.(boolCodec); isBool && len(entries) > 0 {
		return errors.New("a bool has no enum")
	}
	for i, entry := range entries {
		value, ok := p.parse(entry)
		if !ok || entry == "" {
			return fmt.Errorf("the enum's value %q is not %s", entry, p.codec.form())
		}
		entries[i] = p.codec.format(value)
	}
	p.enum = entries
	return nil
}

func (p *parameter) setRange(tag reflect.StructTag) error {
	low, errLow := p.readBound(tag, "min")
	high, errHigh := p.readBound(tag, "max")
	if err := errors.Join(errLow, errHigh); err != nil {
		return err
	}
	if low != nil && high != nil && *low > *high {
		return fmt.Errorf("min %d is above max %d", *low, *high)
	}
	p.min, p.max = low, high
	return nil
}

func (p *parameter) readBound(tag reflect.StructTag, name string) (*int64, error) {
	text, has := tag.Lookup(name)
	if !has {
		return nil, nil
	}
	value := reflect.New(p.elem()).Elem()
	if !value.CanInt() {
		return nil, fmt.Errorf("%s is for numbers and sizes only", name)
	}
	if !p.codec.parse(text, value) {
		return nil, fmt.Errorf("%s %q is not %s", name, text, p.codec.form())
	}
	n := value.Int()
	return &n, nil
}

// setInitial reads the default; enum and range must be set before.
func (p *parameter) setInitial(text string) error {
	if text == "" {
		return nil
	}
	if p.pointer {
		return errors.New("a pointer has no default: nil says that the key is not given")
	}
	if p.family {
		return errors.New("a family of keys has no default")
	}
	value, ok := p.parse(text)
	if !ok {
		return fmt.Errorf("the default %q is not allowed: use %s", text, p.advice())
	}
	p.initial = p.codec.format(value)
	return nil
}
