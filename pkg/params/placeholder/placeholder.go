package placeholder

import "strings"

// Field is what a placeholder stands for.
type Field int

// The fields.
const (
	Unknown Field = iota
	PVCName
	PVCNamespace
	PVName
)

// Style is a way to write placeholders.
type Style struct {
	open, end string
	padded    bool // there may be blanks around a name
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
	Closed bool // its end is there
}

// Fill replaces each placeholder of the style by its value. The first error ends it.
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

// OfClaim returns the first placeholder in the text, of any style, that names a claim; none if there is none.
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
