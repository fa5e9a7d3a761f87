package placeholder

import "strings"

// Field is the value for which a placeholder stands.
type Field int

// The fields.
const (
	Unknown Field = iota
	PVCName
	PVCNamespace
	PVName
)

// Style is a syntax of placeholders.
type Style struct {
	open, end string
	padded    bool // blanks are allowed around a name
	fields    map[string]Field
}

// Braces is the style of {{ .PVCName }}.
func Braces() Style {
	return Style{open: "{{", end: "}}", padded: true, fields: map[string]Field{
		".PVCName": PVCName, ".PVCNamespace": PVCNamespace, ".PVName": PVName,
	}}
}

// Dollar is the style of ${pvc.metadata.name}.
func Dollar() Style {
	return Style{open: "${", end: "}", fields: map[string]Field{
		"pvc.metadata.name": PVCName, "pvc.metadata.namespace": PVCNamespace, "pv.metadata.name": PVName,
	}}
}

// Mark is a placeholder in a text.
type Mark struct {
	Name   string // as it is written
	Field  Field
	Closed bool // its end is present
}

// Fill replaces each placeholder of the style by its value. It stops at the first error.
func (s Style) Fill(text string, value func(Mark) (string, error)) (string, error) {
	var out strings.Builder
	for {
		before, rest, opened := strings.Cut(text, s.open)
		out.WriteString(before)
		if !opened {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, s.end)
		if s.padded {
			name = strings.TrimSpace(name)
		}
		filled, err := value(Mark{Name: name, Field: s.fields[name], Closed: closed})
		if err != nil {
			return "", err
		}
		out.WriteString(filled)
		text = after
	}
}

// OfClaim returns the first placeholder in the text, of any style, that names a claim, and reports whether there is
// one.
func OfClaim(text string) (name string, found bool) {
	for _, style := range []Style{Braces(), Dollar()} {
		_, _ = style.Fill(text, func(m Mark) (string, error) {
			if isOfClaim := m.Field == PVCName || m.Field == PVCNamespace; isOfClaim && !found {
				name, found = style.open+m.Name+style.end, true
			}
			return "", nil
		})
	}
	return name, found
}
