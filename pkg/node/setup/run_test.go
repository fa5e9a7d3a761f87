package setup_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/node/setup"
)

// journal is a strategy, a debt and a setup in one, and records the order of calls.
type journal struct {
	run, work, owed bool
	fail            map[string]error
	calls           []string
}

func (j *journal) note(call string) error {
	j.calls = append(j.calls, call)
	return j.fail[call]
}

func (j *journal) ShouldRun(context.Context) (bool, error) { return j.run, j.fail["should"] }
func (j *journal) Mark(context.Context) error              { return j.note("mark") }
func (j *journal) Owed(context.Context) (bool, error)      { return j.owed, j.fail["owed"] }
func (j *journal) Owe(context.Context) error               { return j.note("owe") }
func (j *journal) Settle(context.Context) error            { return j.note("settle") }
func (j *journal) setup(context.Context) (bool, error)     { return j.work, j.note("setup") }
func (j *journal) apply(context.Context) error             { return j.note("apply") }

var errTest = errors.New("test")

func TestRun(t *testing.T) {
	for _, test := range []struct {
		name    string
		j       journal
		calls   []string
		didWork bool
		fails   bool
	}{
		{"has to run", journal{run: true, work: true}, []string{"setup", "mark"}, true, false},
		{"ran before", journal{work: true}, nil, false, false},
		{"finds nothing to do", journal{run: true}, []string{"setup", "mark"}, false, false},
		{"cannot tell", journal{run: true, work: true, fail: map[string]error{"should": errTest}}, nil, false, true},
		{"fails half-way", journal{run: true, work: true, fail: map[string]error{"setup": errTest}}, []string{"setup"}, true,
			true},
		{"cannot mark", journal{run: true, work: true, fail: map[string]error{"mark": errTest}}, []string{"setup", "mark"},
			true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			didWork, err := setup.Run(t.Context(), &test.j, test.j.setup)
			if didWork != test.didWork || test.fails != errors.Is(err, errTest) || !test.fails && err != nil {
				t.Errorf("Run() = %v, %v; want %v, failure %v", didWork, err, test.didWork, test.fails)
			}
			if !slices.Equal(test.j.calls, test.calls) {
				t.Errorf("calls %v, want %v", test.j.calls, test.calls)
			}
		})
	}
}

func TestRunOwned(t *testing.T) {
	all := []string{"owe", "setup", "apply", "settle", "mark"}
	for _, test := range []struct {
		name    string
		j       journal
		calls   []string
		didWork bool
		fails   bool
	}{
		{"work done", journal{run: true, work: true}, all, true, false},
		{"no work done", journal{run: true}, []string{"owe", "setup", "settle", "mark"}, false, false},
		{"nothing to do", journal{}, nil, false, false},
		{"cut short after setup", journal{owed: true}, []string{"apply", "settle"}, false, false},
		{"cut short within setup", journal{owed: true, run: true, work: true}, all, true, false},
		{"cut short, setup finds it all done", journal{owed: true, run: true}, all, false, false},
		{"debt unreadable", journal{run: true, fail: map[string]error{"owed": errTest}}, nil, false, true},
		{"strategy cannot tell", journal{owed: true, fail: map[string]error{"should": errTest}}, nil, false, true},
		{"debt not written", journal{run: true, work: true, fail: map[string]error{"owe": errTest}}, []string{"owe"}, false,
			true},
		{"setup fails", journal{run: true, work: true, fail: map[string]error{"setup": errTest}}, []string{"owe", "setup"},
			true, true},
		{"ownership fails", journal{run: true, work: true, fail: map[string]error{"apply": errTest}},
			[]string{"owe", "setup", "apply"}, true, true},
		{"debt not settled", journal{run: true, work: true, fail: map[string]error{"settle": errTest}},
			[]string{"owe", "setup", "apply", "settle"}, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			owner := setup.Ownership{Debt: &test.j, Apply: test.j.apply}
			didWork, err := setup.RunOwned(t.Context(), &test.j, owner, test.j.setup)
			if didWork != test.didWork || test.fails != errors.Is(err, errTest) || !test.fails && err != nil {
				t.Errorf("RunOwned() = %v, %v; want %v, failure %v", didWork, err, test.didWork, test.fails)
			}
			if !slices.Equal(test.j.calls, test.calls) {
				t.Errorf("calls %v, want %v", test.j.calls, test.calls)
			}
		})
	}
}

// A volume that wraps another one runs that one's setup inside its own and passes its work on.
func TestRunNested(t *testing.T) {
	for _, inner := range []bool{true, false} {
		wrapped, wrapping := journal{run: inner, work: true}, journal{run: true}
		didWork, err := setup.Run(t.Context(), &wrapping, func(ctx context.Context) (bool, error) {
			return setup.Run(ctx, &wrapped, wrapped.setup)
		})
		if err != nil || didWork != inner {
			t.Errorf("inner setup to run %v: Run() = %v, %v", inner, didWork, err)
		}
		if got := slices.Contains(wrapped.calls, "mark"); got != inner {
			t.Errorf("inner setup to run %v: inner marked %v", inner, got)
		}
		if !slices.Equal(wrapping.calls, []string{"mark"}) {
			t.Errorf("outer calls %v, want mark only", wrapping.calls)
		}
	}
}
