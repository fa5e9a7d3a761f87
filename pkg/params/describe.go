package params

import (
	"reflect"
)

// Field describes a parameter for the documentation.
type Field struct {
	Key     string
	Aliases []string // older spellings of the key
	Type    string   // string, bool, integer, size, duration or list; empty when the key is ignored
	Default string   // empty when there is none
	Allowed string   // the values or the range, for example "ext4 or xfs" or "1 to 100"; empty when the type is sufficient
	Doc     string
	Mutable bool // the field is a pointer, nil when the key is not given: the form of a mutable parameter
	Ignored bool // accepted with any value, without effect
}

// Describe returns the parameters of target, a struct or a pointer to one, in the order of its fields. It
// panics where Check would report a mistake.
func Describe(target any) []Field {
	value, err := structOf(target)
	if err != nil {
		panic("params: " + err.Error())
	}
	parameters := new(Schemas).of([]reflect.Value{value}).parameters
	fields := make([]Field, len(parameters))
	for i, p := range parameters {
		fields[i] = p.describe()
	}
	return fields
}

func (p *parameter) describe() Field {
	f := Field{Key: p.key, Doc: p.doc, Ignored: p.ignored()}
	if len(p.keys) > 1 {
		f.Aliases = p.keys[1:]
	}
	if f.Ignored {
		return f
	}
	f.Type, f.Default, f.Allowed, f.Mutable = p.codec.name(), p.initial, p.allowed(), p.pointer
	if _, isBool := p.codec.(boolCodec); isBool {
		f.Allowed, f.Default = "true or false", p.unsetText()
	}
	if f.Mutable {
		f.Default = ""
	}
	return f
}
