package params

import (
	"reflect"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "ab", 1},
		{"abc", "acb", 1},
		{"kitten", "sitting", 3}, {"pool", "loop", 2}, {"ca", "abc", 3}, {"größe", "grosse", 3}, {"ab", "ba", 1},
		{"abcd", "badc", 2},
	} {
		for _, texts := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			if got := distance(texts[0], texts[1], 100); got != c.want {
				t.Errorf("distance(%q, %q) = %d, want %d", texts[0], texts[1], got, c.want)
			}
		}
		if c.want > 0 {
			if got := distance(c.a, c.b, c.want-1); got < c.want {
				t.Errorf("distance(%q, %q) within %d = %d, want more than that", c.a, c.b, c.want-1, got)
			}
		}
	}
}

func TestNearestPrefersTheNearestThenTheFirst(t *testing.T) {
	var target struct {
		Mode  string `param:"mode"`
		Node  string `param:"node"`
		Model string `param:"model"`
	}
	s := new(Schemas).of([]reflect.Value{reflect.ValueOf(target)})
	for key, want := range map[string]string{"nodes": "node", "model": "model", "models": "model", "lode": "mode",
		"MODE": "mode"} {
		if got, ok := s.nearest(key); !ok || got != want {
			t.Errorf("nearest to %q is %q, %t; want %q", key, got, ok, want)
		}
	}
	if got, ok := s.nearest("colour"); ok {
		t.Errorf("nearest to %q is %q, want none", "colour", got)
	}
}
