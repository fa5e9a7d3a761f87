package backends_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func kinds() []backends.Kind {
	return []backends.Kind{
		backends.Unknown, backends.Invalid, backends.NotFound, backends.Exists, backends.OutOfRange, backends.Exhausted,
		backends.InUse, backends.Busy, backends.Unsupported, backends.Denied, backends.Unavailable, backends.Unusable,
	}
}

func TestKindsHaveWordsOfTheirOwn(t *testing.T) {
	words := map[string]backends.Kind{}
	for _, kind := range kinds() {
		if other, taken := words[kind.String()]; taken {
			t.Errorf("kinds %d and %d are both %q", other, kind, kind)
		}
		words[kind.String()] = kind
	}
	if have := backends.Kind(99).String(); have != "kind 99" {
		t.Errorf("a kind that does not exist is %q, want %q", have, "kind 99")
	}
	if have := (backends.Unusable + 1).String(); have != fmt.Sprintf("kind %d", len(kinds())) {
		t.Errorf("the kind after the last is %q: this test does not know all kinds", have)
	}
}

func TestErrorIsOneSentence(t *testing.T) {
	cause := errors.New("no such disk")
	for _, row := range []struct {
		err  backends.Error
		want string
	}{
		{backends.Error{Err: cause}, `no such disk`},
		{backends.Error{Op: "create", Err: cause}, `create: no such disk`},
		{backends.Error{Volume: "v1", Err: cause}, `"v1": no such disk`},
		{backends.Error{Op: "create", Volume: "v1", Err: cause}, `create "v1": no such disk`},
		{backends.Error{Op: "create", Volume: "a\nb\x00", Err: cause}, `create "a\nb\x00": no such disk`},
	} {
		if have := row.err.Error(); have != row.want {
			t.Errorf("the error is %s, want %s", have, row.want)
		}
	}
}

func TestKindOf(t *testing.T) {
	inner := backends.Errorf(backends.NotFound, "no disk: %w", fs.ErrNotExist)
	outer := backends.Errorf(backends.Busy, "not known yet: %w", inner)
	for _, row := range []struct {
		name string
		err  error
		want backends.Kind
	}{
		{"nil", nil, backends.Unknown},
		{"a plain error", fs.ErrNotExist, backends.Unknown},
		{"an ended context", context.Canceled, backends.Unknown},
		{"an Error", inner, backends.NotFound},
		{"an Error around another", outer, backends.Busy},
		{"a wrapped Error", fmt.Errorf("while mounting: %w", inner), backends.NotFound},
		{"a joined Error", errors.Join(fs.ErrExist, inner), backends.NotFound},
	} {
		if have := backends.KindOf(row.err); have != row.want {
			t.Errorf("%s has the kind %q, want %q", row.name, have, row.want)
		}
		for _, kind := range kinds() {
			if have, want := backends.Is(row.err, kind), row.err != nil && kind == row.want; have != want {
				t.Errorf("%s is %q: %t, want %t", row.name, kind, have, want)
			}
		}
	}
	if !errors.Is(outer, fs.ErrNotExist) {
		t.Error("the first cause is lost when errors are wrapped")
	}
}
