package adversary

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestOpenings shows that a call is excused by a process that has devices open at any time of the call, and by no
// earlier one.
func TestOpenings(t *testing.T) {
	var o openings
	before := o.since()
	if before() {
		t.Error("got an opener before there is one")
	}
	o.begin()
	during := o.since()
	if !before() || !during() {
		t.Errorf("got before %t, during %t, want the opener for both calls", before(), during())
	}
	o.end()
	if after := o.since(); !before() || !during() || after() {
		t.Errorf("got before %t, during %t, after %t, want the opener for the first two", before(), during(), after())
	}
}

// TestOpenerExcusesNoLaterCall makes a call that is refused once, while a process opens devices or after that.
func TestOpenerExcusesNoLaterCall(t *testing.T) {
	for name, test := range map[string]struct {
		during bool
		blamed string
	}{
		"during": {true, ""}, "after": {false, "no reason"},
	} {
		w := &world{life: t.Context(), tally: NewTally(), limits: patient()}
		w.openings.begin()
		if !test.during {
			w.openings.end()
		}
		refused := false
		_ = w.ask(request{name: "NodeUnstageVolume v-1", send: func(context.Context) (string, error) {
			if refused {
				return "", nil
			}
			refused = true
			return "", status.Error(codes.FailedPrecondition, "a process has it open")
		}})
		if got := class(append(w.wrong, "")[0]); got != test.blamed {
			t.Errorf("%s: got %q, want %q", name, got, test.blamed)
		}
	}
}
