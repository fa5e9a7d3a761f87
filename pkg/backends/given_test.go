package backends_test

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func TestGiven(t *testing.T) {
	type settings struct{ Size int }
	for name, c := range map[string]struct {
		value any
		want  int
		kind  backends.Kind
	}{
		"decoded":           {&settings{3}, 3, backends.Unknown},
		"nothing":           {nil, 0, backends.Unknown},
		"a nil pointer":     {(*settings)(nil), 0, backends.Unknown},
		"not a pointer":     {settings{3}, 0, backends.Invalid},
		"of another driver": {&struct{ Size int }{3}, 0, backends.Invalid},
	} {
		got, err := backends.Given[settings](c.value)
		if got.Size != c.want || (err != nil) != (c.kind == backends.Invalid) || backends.KindOf(err) != c.kind {
			t.Errorf("%s: got %+v and %v, want size %d and Kind %s", name, got, err, c.want, c.kind)
		}
	}
}
