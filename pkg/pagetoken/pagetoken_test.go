package pagetoken

import (
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/failure"
)

func ours(handle string) bool { return strings.HasPrefix(handle, "vol-") }

func same(handle string) string { return handle }

func TestPages(t *testing.T) {
	all := []string{"vol-1", "vol-2", "vol-3"}
	for limit, want := range map[int][]string{0: all, 1: all[:1], 2: all[:2], 3: all, 4: all} {
		page, next := Cut(all, limit, same)
		if !slices.Equal(page, want) || (next == "") != (len(want) == len(all)) {
			t.Errorf("limit %d: got %q and %q", limit, page, next)
		}
		if after, err := Parse(next, ours); err != nil || next != "" && after != want[len(want)-1] {
			t.Errorf("%q goes on after %q: %v", next, after, err)
		}
	}
}

func TestForeignTokens(t *testing.T) {
	for _, token := range []string{"x", After("other-1"), After("vol-1") + "\n", After("vol-1")[2:], "dm9sLTE"} {
		if after, err := Parse(token, ours); !failure.Is(err, failure.Busy) {
			t.Errorf("%q is read as %q, %v; want Busy", token, after, err)
		}
	}
}
