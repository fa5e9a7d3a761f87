package failure_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stowage-csi/stowage/pkg/failure"
)

func kinds() []failure.Kind {
	return []failure.Kind{
		failure.Unknown, failure.Invalid, failure.NotFound, failure.Exists, failure.OutOfRange, failure.Exhausted,
		failure.InUse, failure.Busy, failure.Unsupported, failure.Denied, failure.Unavailable, failure.Unusable,
	}
}

func TestKindsHaveWordsOfTheirOwn(t *testing.T) {
	words := map[string]failure.Kind{}
	for _, kind := range kinds() {
		if other, taken := words[kind.String()]; taken {
			t.Errorf("kinds %d and %d are both %q", other, kind, kind)
		}
		words[kind.String()] = kind
	}
	if have := failure.Kind(99).String(); have != "kind 99" {
		t.Errorf("a kind that does not exist is %q, want %q", have, "kind 99")
	}
	if have := (failure.Unusable + 1).String(); have != fmt.Sprintf("kind %d", len(kinds())) {
		t.Errorf("the kind after the last is %q: this test does not know all kinds", have)
	}
}

func TestErrorIsOneSentence(t *testing.T) {
	cause := errors.New("no such disk")
	for _, row := range []struct {
		err  failure.Error
		want string
	}{
		{failure.Error{Err: cause}, `no such disk`},
		{failure.Error{Op: "create", Err: cause}, `create: no such disk`},
		{failure.Error{Volume: "v1", Err: cause}, `"v1": no such disk`},
		{failure.Error{Op: "create", Volume: "v1", Err: cause}, `create "v1": no such disk`},
		{failure.Error{Op: "create", Volume: "a\nb\x00", Err: cause}, `create "a\nb\x00": no such disk`},
	} {
		if have := row.err.Error(); have != row.want {
			t.Errorf("the error is %s, want %s", have, row.want)
		}
	}
}

func TestKindOf(t *testing.T) {
	inner := failure.Errorf(failure.NotFound, "no disk: %w", fs.ErrNotExist)
	outer := failure.Errorf(failure.Busy, "not known yet: %w", inner)
	for _, row := range []struct {
		name string
		err  error
		want failure.Kind
	}{
		{"nil", nil, failure.Unknown},
		{"a plain error", fs.ErrNotExist, failure.Unknown},
		{"a full disk", fmt.Errorf("write: %w", syscall.ENOSPC), failure.Exhausted},
		{"a full quota", &fs.PathError{Op: "write", Path: "/p", Err: syscall.EDQUOT}, failure.Exhausted},
		{"a failing disk", &fs.PathError{Op: "read", Path: "/p", Err: syscall.EIO}, failure.Unavailable},
		{"a read-only disk", syscall.EROFS, failure.Unavailable},
		{"a missing file", &fs.PathError{Op: "open", Path: "/p", Err: syscall.ENOENT}, failure.Unavailable},
		{"missing rights", syscall.EPERM, failure.Unknown},
		{"a wrong argument", syscall.EINVAL, failure.Unknown},
		{"a context that ended at a full disk", errors.Join(context.Canceled, syscall.ENOSPC), failure.Unknown},
		{"an Error around a full disk", failure.Errorf(failure.Busy, "later: %w", syscall.ENOSPC), failure.Busy},
		{"an ended context", context.Canceled, failure.Unknown},
		{"an Error", inner, failure.NotFound},
		{"an Error around another", outer, failure.Busy},
		{"a wrapped Error", fmt.Errorf("while mounting: %w", inner), failure.NotFound},
		{"a joined Error", errors.Join(fs.ErrExist, inner), failure.NotFound},
	} {
		if have := failure.KindOf(row.err); have != row.want {
			t.Errorf("%s has the kind %q, want %q", row.name, have, row.want)
		}
		for _, kind := range kinds() {
			if have, want := failure.Is(row.err, kind), row.err != nil && kind == row.want; have != want {
				t.Errorf("%s is %q: %t, want %t", row.name, kind, have, want)
			}
		}
	}
	if !errors.Is(outer, fs.ErrNotExist) {
		t.Error("the first cause is lost when errors are wrapped")
	}
}
