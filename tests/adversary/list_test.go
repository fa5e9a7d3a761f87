package adversary

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// twoPages returns the function that returns the pages of a list. Its second page fails so many times.
func twoPages(code codes.Code, times int) func(ctx context.Context, token string) ([]string, string, error) {
	return func(_ context.Context, token string) ([]string, string, error) {
		if token == "" {
			return []string{"a"}, "next", nil
		}
		if times--; times >= 0 {
			return nil, "", status.Error(code, "the list has changed")
		}
		return []string{"b"}, "", nil
	}
}

// TestListBeginsAgain shows that a list whose second page is turned away begins again, and is not taken for an empty or
// shorter one.
func TestListBeginsAgain(t *testing.T) {
	w := &world{life: t.Context(), tally: NewTally(), limits: patient()}
	if got := w.pages("ListVolumes", twoPages(codes.Aborted, 3)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q, want a and b", got)
	}
	if got := w.pages("ListVolumes", twoPages(codes.Aborted, 1000)); got != nil || len(w.wrong) > 0 {
		t.Errorf("a list that never ends: got %q and %q, want no list and no violation while items may come", got, w.wrong)
	}
}

// TestUnreadableListIsNotEmpty blames the driver for a list that is never obtained although all is quiet.
func TestUnreadableListIsNotEmpty(t *testing.T) {
	for name, test := range map[string]struct {
		code codes.Code
		want string
	}{
		"never read to its end": {codes.Aborted, "no end"},
		"not implemented":       {codes.Unimplemented, "no reason"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{life: context.Background(), tally: NewTally(),
					limits: limits{calls: time.Minute, lists: time.Second}}
				w.calm.Store(true)
				w.lists("volumes", nil, func() []string { return w.pages("ListVolumes", twoPages(test.code, 1_000_000)) })
				if len(w.wrong) != 1 || class(w.wrong[0]) != test.want {
					t.Errorf("got %q, want one violation: %s", w.wrong, test.want)
				}
			})
		})
	}
}
