package params

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// codec handles one type of parameter: its text form and its place in a struct.
type codec interface {
	// name is the type's name in the documentation.
	name() string
	// form describes the accepted text forms.
	form() string
	// parse sets to from the text, and reports whether the text has the form.
	parse(text string, to reflect.Value) bool
	// format returns the canonical text of a value.
	format(from reflect.Value) string
}

// codecOf returns the codec of a type that is not a pointer. Other named integer types than Size and Duration have
// none: a time.Duration would silently count nanoseconds.
func codecOf(t reflect.Type) (codec, bool) {
	switch {
	case t.Kind() == reflect.String:
		return stringCodec{}, true
	case t == reflect.TypeFor[bool]():
		return boolCodec{}, true
	case t == reflect.TypeFor[int](), t == reflect.TypeFor[int64]():
		return integerCodec{}, true
	case t == reflect.TypeFor[Size]():
		return sizeCodec{}, true
	case t == reflect.TypeFor[Duration]():
		return durationCodec{}, true
	case t == reflect.TypeFor[[]string]():
		return listCodec{}, true
	}
	return nil, false
}

type stringCodec struct{}

func (stringCodec) name() string { return "string" }
func (stringCodec) form() string { return "text without control characters" }

func (stringCodec) parse(text string, to reflect.Value) bool {
	to.SetString(text)
	return printable(text)
}

func (stringCodec) format(from reflect.Value) string { return from.String() }

// printable reports whether the text is safe in a path, an argument or a record.
func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

type boolCodec struct{}

func (boolCodec) name() string { return "bool" }
func (boolCodec) form() string { return "true or false, in lower case" }

func (boolCodec) parse(text string, to reflect.Value) bool {
	to.SetBool(text == "true")
	return text == "true" || text == "false"
}

func (boolCodec) format(from reflect.Value) string { return strconv.FormatBool(from.Bool()) }

type integerCodec struct{}

func (integerCodec) name() string { return "integer" }
func (integerCodec) form() string { return "a whole number without leading zeros" }

func (integerCodec) parse(text string, to reflect.Value) bool {
	n, ok := parseInteger(text)
	if !ok || to.OverflowInt(n) {
		return false
	}
	to.SetInt(n)
	return true
}

func (integerCodec) format(from reflect.Value) string { return strconv.FormatInt(from.Int(), 10) }

type sizeCodec struct{}

func (sizeCodec) name() string { return "size" }
func (sizeCodec) form() string { return sizeForms }

func (sizeCodec) parse(text string, to reflect.Value) bool {
	size, ok := parseSize(text)
	to.SetInt(int64(size))
	return ok
}

func (sizeCodec) format(from reflect.Value) string { return Size(from.Int()).String() }

type listCodec struct{}

func (listCodec) name() string { return "list" }
func (listCodec) form() string { return "entries separated by commas, none of them empty" }

func (listCodec) parse(text string, to reflect.Value) bool {
	to.SetZero()
	if text == "" {
		return true
	}
	entries := strings.Split(text, ",")
	for i, entry := range entries {
		entries[i] = strings.TrimSpace(entry)
	}
	to.Set(reflect.ValueOf(entries))
	return printable(text) && !slices.Contains(entries, "")
}

func (listCodec) format(from reflect.Value) string {
	list, _ := from.Interface().([]string) // codecOf returns this codec for []string only.
	return strings.Join(list, ",")
}
