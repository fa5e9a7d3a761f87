package adversary

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Tally counts what happened.
type Tally struct {
	mu                   sync.Mutex     // for Add
	Schedules            map[string]int // by setup and profile
	Calls, Codes, Faults map[string]int
	NotNow               map[string]int // faults that could not be when they were due
	Took                 map[string]time.Duration
}

// NewTally returns an empty Tally.
func NewTally() *Tally {
	return &Tally{Schedules: map[string]int{}, Calls: map[string]int{}, Codes: map[string]int{}, Faults: map[string]int{},
		NotNow: map[string]int{}, Took: map[string]time.Duration{}}
}

// Add adds the counts of another Tally.
func (t *Tally) Add(o *Tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, counts := range [][2]map[string]int{{t.Schedules, o.Schedules}, {t.Calls, o.Calls}, {t.Codes, o.Codes},
		{t.Faults, o.Faults}, {t.NotNow, o.NotNow}} {
		for name, n := range counts[1] {
			counts[0][name] += n
		}
	}
	for name, took := range o.Took {
		t.Took[name] += took
	}
}

// class returns the invariant that a violation breaks: the text before the colon.
func class(violation string) string {
	class, _, _ := strings.Cut(violation, ":")
	return class
}

// Shrink looks for the shortest schedule that still breaks the invariant, until a time. It leaves out whole tracks,
// then ever shorter runs of steps, and then faults and concurrent steps. Because violations may depend on a race, each
// candidate is tried a few times. After a failed try that has taken a third of the time, nothing more is tried.
func Shrink(s Schedule, invariant string, until time.Time, try func(Schedule) (violation string)) Schedule {
	share := time.Until(until) / 3
	fails := func(c Schedule) bool {
		for range 3 {
			began := time.Now()
			if began.After(until) {
				return false
			}
			if class(try(c)) == invariant {
				return true
			}
			if time.Since(began) > share {
				until = began
			}
		}
		return false
	}
	for before := 0; before != s.size() && time.Now().Before(until); {
		before = s.size()
		for i := len(s.Tracks) - 1; i >= 0; i-- {
			if c := s.clone(); len(s.Tracks) > 1 {
				if c.Tracks = slices.Delete(c.Tracks, i, i+1); fails(c) {
					s = c
				}
			}
		}
		for i := range s.Tracks {
			s = shorten(s, i, fails)
		}
		s = simplify(s, fails)
	}
	return s
}

// shorten leaves out steps of a track.
func shorten(s Schedule, track int, fails func(Schedule) bool) Schedule {
	for n := (len(s.Tracks[track]) + 1) / 2; n >= 1; n /= 2 {
		for at := len(s.Tracks[track]) - n; at >= 0; at -= n {
			c := s.clone()
			if c.Tracks[track] = slices.Delete(c.Tracks[track], at, at+n); fails(c) {
				s = c
				at = min(at, len(s.Tracks[track]))
			}
		}
	}
	return s
}

// simplify leaves out faults, concurrent steps, and special ways of making calls.
func simplify(s Schedule, fails func(Schedule) bool) Schedule {
	for i, track := range s.Tracks {
		for j := range track {
			for _, change := range []func(*Step){
				func(s *Step) { s.Fault = nil }, func(s *Step) { s.Beside = nil }, func(s *Step) { s.How, s.Within = Once, 0 },
			} {
				c := s.clone()
				if change(&c.Tracks[i][j]); c.Tracks[i][j] != s.Tracks[i][j] && fails(c) {
					s = c
				}
			}
		}
	}
	return s
}
