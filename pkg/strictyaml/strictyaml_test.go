package strictyaml_test

import (
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/strictyaml"
)

func TestUnmarshal(t *testing.T) {
	for text, mention := range map[string]string{
		"":                             "",
		"name: a":                      "",
		"---\nname: a\n---\n# end\n":   "",
		"# as rendered\n---\nname: a":  "",
		"name: a\nnaem: b":             `unknown field "naem"`,
		"name: a\nname: b":             `"name" already set`,
		"name: a\n---\nname: b\n":      "a second document",
		"---\n---\nname: b\n":          "a second document",
		"name: a\n---\n---\nname: b\n": "a second document",
		"name: a\n---\n{":              "did not find",
	} {
		var value struct {
			Name string `json:"name"`
		}
		err := strictyaml.Unmarshal([]byte(text), &value)
		if mention == "" && err != nil || mention != "" && (err == nil || !strings.Contains(err.Error(), mention)) {
			t.Errorf("%q: %v, want %q", text, err, mention)
		}
	}
}
