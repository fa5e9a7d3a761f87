package share

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Unwanted names do not count, except for a server that invents them for ever; of too many wanted names some are
// listed.
func TestNamesThatNobodyAsksFor(t *testing.T) {
	path := t.TempDir()
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(path, fmt.Sprint("name", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		seen, most, wants int
		prefix            string
		flooded           bool
	}{
		"few of many":       {100, 1, 1, "name42", false},
		"too many at all":   {99, 100, 0, "name42", true},
		"too many of these": {100, 5, 5, "name", true},
		"all":               {100, 100, 100, "name", false},
	} {
		dir, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		names, err := listed(dir, row.seen, row.most,
			func(name string) (string, bool) { return name, strings.HasPrefix(name, row.prefix) },
			func(int) error { return nil })
		if len(names) != row.wants || errors.Is(err, ErrFlooded) != row.flooded || err != nil && !row.flooded {
			t.Errorf("%s: got %d names, %v", name, len(names), err)
		}
	}
}

// A list of names ends with its call, even among unwanted names.
func TestAListEndsWithItsCall(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "name"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h := (&Home{}).Until(ctx)
		dir, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		names, err := listed(dir, 100, 100, func(name string) (string, bool) { cancel(); return name, wanted }, h.Charge)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a list of names that are wanted, %t, ended with %q, %v", wanted, names, err)
		}
	}
}
