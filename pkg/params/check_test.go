package params

import (
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

func TestCheckAcceptsWhatIsRight(t *testing.T) {
	for _, target := range []any{everything{}, new(everything), Metadata{}, SnapshotMetadata{}, &rules{}, struct{}{}} {
		if err := Check(target); err != nil {
			t.Errorf("%T: %v", target, err)
		}
	}
	if err := Check(everything{}, Metadata{}, SnapshotMetadata{}); err != nil {
		t.Errorf("together: %v", err)
	}
}

type mistake struct {
	name   string
	target any
	want   string
}

func typeMistakes() []mistake {
	return []mistake{
		{"float", &struct {
			F float64 `param:"f"`
		}{}, "field F of struct { F float64 \"param:\\\"f\\\"\" }: type float64 is not supported"},
		{"duration", &struct {
			D time.Duration `param:"d"`
		}{}, "type time.Duration is not supported"},
		{"struct", &struct {
			S struct{} `param:"s"`
		}{}, "type struct {} is not supported"},
		{"embedded with a key", &struct {
			common `param:"s"`
		}{}, "must be exported"},
		{"embedded pointer", &struct{ *common }{}, "embed the struct itself"},
		{"pointer to pointer", &struct {
			P **int `param:"p"`
		}{}, "type **int is not supported"},
		{"unexported", &struct {
			hidden string `param:"h"`
		}{}, "must be exported"},
		{"no struct", new(int), "a target is *int: use a pointer to a struct"},
		{"nil", nil, "a target is <nil>: use a pointer to a struct"},
		{"nil pointer", (*common)(nil), "a target is *params.common: use a pointer to a struct, and not nil"},
	}
}

func tagMistakes() []mistake {
	return []mistake{
		{"default outside enum", &struct {
			S string `param:"s" enum:"a|b" default:"c"`
		}{}, `the default "c" is not allowed: use a or b`},
		{"default outside range", &struct {
			N int `param:"n" min:"2" default:"1"`
		}{}, `the default "1" is not allowed: use a whole number without leading zeros, at least 2`},
		{"default of another type", &struct {
			B bool `param:"b" default:"yes"`
		}{}, `the default "yes" is not allowed`},
		{"default of a pointer", &struct {
			B *bool `param:"b" default:"true"`
		}{}, "a pointer has no default"},
		{"empty key", &struct {
			S string `param:""`
		}{}, "a key is empty"},
		{"empty alias", &struct {
			S string `param:"s" alias:"a|"`
		}{}, "a key is empty"},
		{"enum of a bool", &struct {
			B bool `param:"b" enum:"true"`
		}{}, "a bool has no enum"},
		{"enum of another type", &struct {
			N int `param:"n" enum:"1|two"`
		}{}, `the enum's value "two" is not a whole number`},
		{"empty enum value", &struct {
			S string `param:"s" enum:"a||b"`
		}{}, `the enum's value "" is not`},
		{"min of a string", &struct {
			S string `param:"s" min:"1"`
		}{}, "min is for numbers and sizes only"},
		{"max of another type", &struct {
			S Size `param:"s" max:"1GB"`
		}{}, `max "1GB" is not a size`},
		{"min above max", &struct {
			S Size `param:"s" min:"2Ki" max:"1Ki"`
		}{}, "min 2048 is above max 1024"},
		{"tags without a key", &struct {
			S string `default:"x"`
		}{}, `there is a tag "default" and no tag "param"`},
		{"default of an ignored key", &struct {
			_ string `param:"s" default:"x"`
		}{}, "a key that is ignored has no default"},
		{"key twice", &struct {
			A string `param:"same"`
			B string `param:"b" alias:"same"`
		}{}, `the key "same" is used twice`},
	}
}

func TestMistakesAreReportedByCheckAndPanic(t *testing.T) {
	for _, c := range append(typeMistakes(), tagMistakes()...) {
		t.Run(c.name, func(t *testing.T) {
			err := Check(c.target)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check says %v, want %s", err, c.want)
			}
			mustPanic(t, func() { _ = Decode(nil, c.target) }, "params: ", c.want)
		})
	}
}

func TestKeyTwiceInTwoTargets(t *testing.T) {
	var other struct {
		Text string `param:"text"`
	}
	const want = `the key "text" is used twice`
	if err := Check(&other, everything{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Check says %v, want %s", err, want)
	}
	mustPanic(t, func() { _ = Decode(nil, &other, new(everything)) }, want)
	mustPanic(t, func() { Fingerprint(other, everything{}) }, want)
}

func TestCheckNamesAllMistakes(t *testing.T) {
	err := Check(struct {
		A float32 `param:"a"`
		B int     `param:"b" min:"2" default:"1"`
	}{}, 7)
	for _, want := range []string{"field A of", "field B of", "a target is int"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check says %v, want %s", err, want)
		}
	}
	if failure.KindOf(err) != failure.Unknown {
		t.Errorf("a programmer's mistake has the kind %v", failure.KindOf(err))
	}
}

func TestOtherMisuse(t *testing.T) {
	mustPanic(t, func() { _ = Decode(nil, everything{}) }, "a target is params.everything: use a pointer to it")
	mustPanic(t, func() { Encode(7) }, "a target is int")
	mustPanic(t, func() { Describe(nil) }, "a target is <nil>")
}
