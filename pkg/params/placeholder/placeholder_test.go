package placeholder

import (
	"errors"
	"testing"
)

func TestFill(t *testing.T) {
	wrong := errors.New("wrong")
	for _, c := range []struct {
		style      Style
		text, want string
		err        error
	}{
		{Braces(), "a={{.PVCName}}/{{ .PVCNamespace }}/{{.PVName}}", "a=n/ns/v", nil},
		{Braces(), "a=${pvc.metadata.name}", "a=${pvc.metadata.name}", nil},
		{Braces(), "{{.Secret}}", "", wrong},
		{Braces(), "{{.PVCName", "open:n", nil},
		{Dollar(), "${pvc.metadata.name}/${pvc.metadata.namespace}/${pv.metadata.name}", "n/ns/v", nil},
		{Dollar(), "${ pvc.metadata.name}", "", wrong},
		{Dollar(), "", "", nil},
	} {
		got, err := c.style.Fill(c.text, func(m Mark) (string, error) {
			value := map[Field]string{PVCName: "n", PVCNamespace: "ns", PVName: "v"}[m.Field]
			switch {
			case m.Field == Unknown:
				return "", wrong
			case !m.Closed:
				return "open:" + value, nil
			}
			return value, nil
		})
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q becomes %q (%v), want %q (%v)", c.text, got, err, c.want, c.err)
		}
	}
}

func TestOfClaim(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "{{.PVName}} ${pv.metadata.name}": "", "{{.Other}} {{ .PVCName }}": "{{.PVCName}}",
		"x${pvc.metadata.namespace}": "${pvc.metadata.namespace}",
	} {
		if got, found := OfClaim(text); got != want || found != (want != "") {
			t.Errorf("%q has %q (%t), want %q", text, got, found, want)
		}
	}
}
