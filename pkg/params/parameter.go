package params

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// parameter is one key, as described by the tags of a struct's field.
type parameter struct {
	key     string
	keys    []string // key and its aliases
	doc     string
	codec   codec // nil when the key is ignored
	enum    []string
	min     *int64
	max     *int64
	initial string       // the default in canonical text
	pointer bool         // nil means "not given"
	family  bool         // of keys with the same beginning: the field is a map of the values by the ends of the keys
	index   []int        // of the field in its struct
	owner   int          // the index of its struct in the schema
	typ     reflect.Type // of the field
}

func (p *parameter) ignored() bool { return p.codec == nil }

// field returns the field for the value.
func (p *parameter) field(structs []reflect.Value) reflect.Value {
	return structs[p.owner].FieldByIndex(p.index)
}

// setDefault sets the field to the value for an absent key.
func (p *parameter) setDefault(field reflect.Value) {
	field.SetZero()
	if p.initial != "" {
		p.codec.parse(p.initial, field)
	}
}

// set sets the field to the value of the text, and reports whether that is allowed. Otherwise it does not change the
// field. The key decides which entry of a family is set.
func (p *parameter) set(field reflect.Value, key, text string) bool {
	value, ok := p.parse(text)
	if !ok {
		return false
	}
	if p.family {
		if field.IsNil() {
			field.Set(reflect.MakeMap(p.typ))
		}
		field.SetMapIndex(reflect.ValueOf(key[len(p.beginning()):]), value)
		return true
	}
	if p.pointer {
		value = value.Addr()
	}
	field.Set(value)
	return true
}

// parse returns the value of the text, addressable and never a pointer, and reports whether the tags allow it.
func (p *parameter) parse(text string) (reflect.Value, bool) {
	value := reflect.New(p.elem()).Elem()
	if !p.codec.parse(text, value) {
		return value, false
	}
	return value, p.inEnum(value) && p.inRange(value)
}

// beginning returns what the keys of a family begin with.
func (p *parameter) beginning() string { return strings.TrimSuffix(p.key, anything) }

func (p *parameter) elem() reflect.Type {
	if p.pointer || p.family {
		return p.typ.Elem()
	}
	return p.typ
}

func (p *parameter) inEnum(value reflect.Value) bool {
	if len(p.enum) == 0 {
		return true
	}
	if list, ok := value.Interface().([]string); ok {
		return !slices.ContainsFunc(list, func(entry string) bool { return !slices.Contains(p.enum, entry) })
	}
	return slices.Contains(p.enum, p.codec.format(value))
}

func (p *parameter) inRange(value reflect.Value) bool {
	if p.min != nil && value.Int() < *p.min {
		return false
	}
	return p.max == nil || value.Int() <= *p.max
}

// texts returns the canonical text of each key that has been given, without those whose value is that of an absent key.
func (p *parameter) texts(field reflect.Value) map[string]string {
	if !p.family {
		if text, given := p.text(field); given {
			return map[string]string{p.key: text}
		}
		return nil
	}
	texts := make(map[string]string, field.Len())
	for entries := field.MapRange(); entries.Next(); {
		texts[p.beginning()+entries.Key().String()] = p.codec.format(entries.Value())
	}
	return texts
}

// text returns the canonical text of the field's value; ok is false when the value is that of an absent key.
func (p *parameter) text(value reflect.Value) (text string, ok bool) {
	if p.pointer {
		if value.IsNil() {
			return "", false
		}
		return p.codec.format(value.Elem()), true
	}
	text = p.codec.format(value)
	return text, text != p.unsetText()
}

// unsetText returns the canonical text of the value that setDefault sets.
func (p *parameter) unsetText() string {
	if p.initial != "" {
		return p.initial
	}
	return p.codec.format(reflect.Zero(p.elem()))
}

// allowed describes the values or the range that the tags allow; empty if the type alone does.
func (p *parameter) allowed() string {
	switch {
	case len(p.enum) > 0:
		return strings.Join(p.enum, " or ")
	case p.min != nil && p.max != nil:
		return p.bound(*p.min) + " to " + p.bound(*p.max)
	case p.min != nil:
		return "at least " + p.bound(*p.min)
	case p.max != nil:
		return "at most " + p.bound(*p.max)
	}
	return ""
}

// advice returns what to use instead of a value that is not allowed.
func (p *parameter) advice() string {
	allowed := p.allowed()
	_, list := p.codec.(listCodec)
	switch {
	case allowed == "":
		return p.codec.form()
	case list:
		return fmt.Sprintf("%s, each of them %s", p.codec.form(), allowed)
	case len(p.enum) > 0:
		return allowed
	}
	return fmt.Sprintf("%s, %s", p.codec.form(), allowed)
}

func (p *parameter) bound(n int64) string {
	value := reflect.New(p.elem()).Elem()
	value.SetInt(n)
	return p.codec.format(value)
}
