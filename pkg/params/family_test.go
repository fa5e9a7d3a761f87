package params

import (
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// tagged has one key of a family as a parameter of its own.
type tagged struct {
	First string            `param:"tag_1"`
	Rest  map[string]string `param:"tag_*" doc:"Any other tag."`
}

func TestFamilyHoldsTheOtherKeys(t *testing.T) {
	values := map[string]string{"tag_1": "a=1", "tag_team": "b=2", "tag_*": "c=3", "tag_Team": ""}
	var x tagged
	if err := Decode(values, &x); err != nil {
		t.Fatal(err)
	}
	want := tagged{First: "a=1", Rest: map[string]string{"team": "b=2", "*": "c=3", "Team": ""}}
	if !reflect.DeepEqual(x, want) {
		t.Errorf("got %+v, want %+v", x, want)
	}
	if got := Encode(x); !maps.Equal(got, values) {
		t.Errorf("it encodes to %q, want %q", got, values)
	}
	if Fingerprint(x) == Fingerprint(tagged{First: "a=1"}) {
		t.Error("the fingerprint is the same without the family, want another")
	}
	if err := Decode(map[string]string{}, &x); err != nil || x.Rest != nil {
		t.Errorf("without keys: got %+v with %v, want nothing of what it had", x, err)
	}
}

func TestFamilyRefusesWhatIsWrong(t *testing.T) {
	for _, row := range []struct{ key, value, want string }{
		{"tag_", "a=1", `parameter "tag_" is not known`},
		{"Tag_team", "a=1", `parameter "Tag_team" is not known`},
		{"tag_team", "a\nb", `parameter "tag_team" is "a\nb"`},
	} {
		err := Decode(map[string]string{row.key: row.value}, new(tagged))
		if !failure.Is(err, failure.Invalid) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: got %v, want Invalid that says %s", row.key, err, row.want)
		}
	}
}

func TestFamilyIsDescribed(t *testing.T) {
	want := Field{Key: "tag_*", Type: "string", Doc: "Any other tag."}
	if got := Describe(tagged{}); len(got) != 2 || !reflect.DeepEqual(got[1], want) {
		t.Errorf("got %+v, want %+v as the second", got, want)
	}
}

func TestCheckFindsMistakesInFamilies(t *testing.T) {
	for want, target := range map[string]any{
		"such a key for nothing else": struct {
			S string `param:"s_*"`
		}{},
		"a map[string]string is for a key that ends with": struct {
			M map[string]string `param:"m"`
		}{},
		"has no alias": struct {
			M map[string]string `param:"m_*" alias:"n_*"`
		}{},
		"has no default": struct {
			M map[string]string `param:"m_*" default:"a"`
		}{},
	} {
		if err := Check(target); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a mistake that says %q", err, want)
		}
	}
}
