package adversary

import (
	"slices"
	"strings"
	"time"
)

// Tally counts what happened.
type Tally struct {
	Schedules            map[string]int // by setup and profile
	Calls, Codes, Faults map[string]int
	Took                 map[string]time.Duration
}

// NewTally is one of nothing.
func NewTally() *Tally {
	return &Tally{Schedules: map[string]int{}, Calls: map[string]int{}, Codes: map[string]int{}, Faults: map[string]int{}, Took: map[string]time.Duration{}}
}

// class is the invariant that a violation breaks: what comes before the colon.
func class(violation string) string {
	class, _, _ := strings.Cut(violation, ":")
	return class
}

// Shrink looks for the shortest schedule that still breaks the invariant, until a time: it leaves out tracks, then faults and what is
// beside, then steps. What depends on a race is tried a few times.
func Shrink(s Schedule, invariant string, until time.Time, try func(Schedule) (violation string)) Schedule {
	fails := func(c Schedule) bool {
		for range 3 {
			if time.Now().After(until) {
				return false
			}
			if class(try(c)) == invariant {
				return true
			}
		}
		return false
	}
	for progress := true; progress; {
		progress = false
		for _, smaller := range candidates(s) {
			if smaller.size() < s.size() && fails(smaller) {
				s, progress = smaller, true
				break
			}
		}
	}
	return s
}

// candidates are schedules that are a bit smaller, the much smaller ones first.
func candidates(s Schedule) (list []Schedule) {
	for i := range s.Tracks {
		c := s.clone()
		c.Tracks = slices.Delete(c.Tracks, i, i+1)
		list = append(list, c)
	}
	for i, track := range s.Tracks {
		for n := len(track) / 2; n >= 1; n /= 2 {
			for at := len(track) - n; at >= 0; at -= n {
				c := s.clone()
				c.Tracks[i] = slices.Delete(c.Tracks[i], at, at+n)
				list = append(list, c)
			}
		}
		for j := range track {
			for _, simplify := range []func(*Step){func(s *Step) { s.Fault = nil }, func(s *Step) { s.Beside = nil }} {
				c := s.clone()
				simplify(&c.Tracks[i][j])
				list = append(list, c)
			}
		}
	}
	return list
}
