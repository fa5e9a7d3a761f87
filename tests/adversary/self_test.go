package adversary

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestInstant shows that the judge of copies distinguishes contents of one instant from those that never existed.
func TestInstant(t *testing.T) {
	t0 := time.Now()
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	c := newContents(vector{"old": 1})
	c.files["a"] = []version{{2, at(0), at(10)}, {3, at(20), at(30)}}
	c.files["b"] = []version{{4, at(40), at(50)}}
	c.files["open"] = []version{{5, at(5), time.Time{}}}
	for name, test := range map[string]struct {
		vector   vector
		from, to int
		good     bool
	}{
		"before all":             {vector{"old": 1}, -5, 60, true},
		"between":                {vector{"old": 1, "a": 2}, -5, 60, true},
		"during a write":         {vector{"old": 1, "a": 3}, -5, 60, true},
		"the last":               {vector{"old": 1, "a": 3, "b": 4}, -5, 60, true},
		"a write without an end": {vector{"old": 1, "a": 3, "b": 4, "open": 5}, -5, 60, true},
		"mixed":                  {vector{"old": 1, "a": 2, "b": 4}, -5, 60, false},
		"older than the call":    {vector{"old": 1, "a": 2}, 35, 60, false},
		"newer than the answer":  {vector{"old": 1, "a": 3, "b": 4}, -5, 35, false},
		"of another volume":      {vector{"old": 1, "a": 99}, -5, 60, false},
		"a file too many":        {vector{"old": 1, "other": 7}, -5, 60, false},
		"a file is missing":      {vector{"a": 2}, -5, 60, false},
	} {
		if err := c.instant(test.vector, at(test.from), at(test.to)); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReasonsWhenAllGetsCalm shows that a refusal of a call which began before all was calm is no violation yet.
func TestReasonsWhenAllGetsCalm(t *testing.T) {
	w := &world{limits: patient()}
	w.calm.Store(true)
	beside := request{name: "CreateVolumeGroupSnapshot", company: true}
	refusal := answered{err: status.Error(codes.FailedPrecondition, "")}
	for calmed, want := range map[time.Time]string{
		{}: "", time.Now(): "", time.Now().Add(-w.limits.calls): "no reason",
	} {
		if why := w.reason(beside, refusal, 1, calmed); why != want {
			t.Errorf("calm since %v: %q, want %q", calmed, why, want)
		}
	}
}

// TestEachAnswerCounts makes a call twice at once: all successes are compared, and a success counts although the other
// call was refused.
func TestEachAnswerCounts(t *testing.T) {
	refusal := status.Error(codes.FailedPrecondition, "it is in use")
	for name, test := range map[string]struct {
		answers []answered
		want    error
		blamed  string
	}{
		"one answer":               {[]answered{{text: "a"}, {text: "a"}}, nil, ""},
		"two answers":              {[]answered{{text: "a"}, {text: "b"}}, errGone, "one answer"},
		"a success and a refusal":  {[]answered{{text: "a"}, {err: refusal}}, nil, ""},
		"a refusal and a success":  {[]answered{{err: refusal}, {text: "a"}}, nil, ""},
		"two refusals":             {[]answered{{err: refusal}, {err: refusal}}, errRefused, ""},
		"a success and a bad code": {[]answered{{text: "a"}, {err: status.Error(codes.Internal, "")}}, nil, "no reason"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{life: t.Context(), tally: NewTally(), limits: patient()}
			var calls atomic.Int64
			r := request{name: "DeleteVolume v-1", how: Twice, refusals: []codes.Code{codes.FailedPrecondition}}
			r.send = func(context.Context) (string, error) {
				a := test.answers[(calls.Add(1)-1)%int64(len(test.answers))]
				return a.text, a.err
			}
			if err := w.ask(r); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if text := strings.Join(w.wrong, ""); class(text) != test.blamed {
				t.Errorf("blamed %q, want %q", text, test.blamed)
			}
		})
	}
}

// TestVersionOf shows that bytes are exactly one version or none.
func TestVersionOf(t *testing.T) {
	for _, name := range []string{"f1", "r1", "b1"} {
		data := payload(name, 42)
		if id, err := versionOf(name, data); id != 42 || err != nil {
			t.Errorf("%s is version %d, %v", name, id, err)
		}
		torn := slices.Concat(data[:len(data)/2], payload(name, 43)[len(data)/2:])
		if _, err := versionOf(name, torn); err == nil {
			t.Errorf("%s is torn, and no complaint", name)
		}
		if _, err := versionOf(name, data[:len(data)/2]); err == nil {
			t.Errorf("%s is cut short, and no complaint", name)
		}
	}
}

// TestShrink shows that the shortest schedule is found if nothing is random.
func TestShrink(t *testing.T) {
	setup, err := setupNamed("local-ext4")
	if err != nil {
		t.Fatal(err)
	}
	s := NewSchedule(setup, "calls", 1)
	s.Tracks[1][5] = Step{Op: Damage, Slot: 1, Fault: &Fault{Kind: "kill"}}
	short := Shrink(s, "found", time.Now().Add(time.Minute), func(c Schedule) string {
		for _, track := range c.Tracks {
			if slices.ContainsFunc(track, func(s Step) bool { return s.Op == Damage && s.Fault != nil }) {
				return "found: here"
			}
		}
		return ""
	})
	if short.size() != 2 || len(short.Tracks) != 1 {
		t.Errorf("the shortest schedule is\n%s", short)
	}
}

// TestShrinkGivesUp shows that a schedule is not tried again if its tries take most of the time, and find nothing.
func TestShrinkGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSchedule(overServedPool(), "silent", 1)
		tries := 0
		short := Shrink(s, "found", time.Now().Add(time.Minute), func(Schedule) string {
			tries++
			<-time.After(25 * time.Second)
			return ""
		})
		if tries != 1 || short.size() != s.size() {
			t.Errorf("it was tried %d times, and has %d steps of %d", tries, short.size(), s.size())
		}
	})
}

// TestLasts shows that a fault ends with the schedule that has found a violation.
func TestLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, w := time.Now(), &world{}
		if w.lasts(time.Second + time.Millisecond); time.Since(began) != time.Second+time.Millisecond {
			t.Errorf("it lasts %v", time.Since(began))
		}
		go func() { <-time.After(time.Second); w.blame("something") }()
		if w.lasts(20 * time.Second); time.Since(began) > 3*time.Second {
			t.Errorf("it lasts %v, and something was wrong after 2 seconds", time.Since(began))
		}
	})
}

// TestGoesOn shows that each setup has a schedule, even if earlier ones have taken all the time.
func TestGoesOn(t *testing.T) {
	before := *budget
	t.Cleanup(func() { *budget = before })
	*budget = time.Minute
	over := time.Now().Add(-time.Second)
	for n, want := range []bool{true, false} {
		if got := goesOn(n, 1, over); got != want {
			t.Errorf("after %d schedules and the time it goes on: %t, want %t", n, got, want)
		}
	}
}

// TestFoundSchedulesComeInEveryForm shows that the schedules that have found a defect follow the new ones, whose seeds
// they do not change.
func TestFoundSchedulesComeInEveryForm(t *testing.T) {
	number, limit, first := *schedules, *budget, *seed
	t.Cleanup(func() { *schedules, *budget, *seed = number, limit, first })
	s := Setup{Found: []Found{{"copies", 770004}, {"absent", 5}, {"calls", 6}}}
	found := []Found{{"copies", 770004}, {"calls", 6}}
	for name, form := range map[string]struct {
		schedules int
		budget    time.Duration
		seed      uint64
		fresh     []Found
	}{
		"short": {fresh: []Found{{"calls", 1}, {"copies", 2}, {"calls", 3}, {"copies", 4}}},
		"of a number": {schedules: 3, seed: 42,
			fresh: []Found{{"calls", 42}, {"copies", 43}, {"calls", 44}}},
		"without time": {budget: time.Minute, fresh: []Found{{"calls", 1}}},
	} {
		*schedules, *budget, *seed = form.schedules, form.budget, form.seed
		var got []Found
		for n, f := range planned(s, []string{"calls", "copies"}, time.Now().Add(-time.Second)) {
			if n != len(got) {
				t.Errorf("%s: schedule %d has the number %d", name, len(got), n)
			}
			got = append(got, f)
		}
		if want := slices.Concat(form.fresh, found); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for _, s := range slices.Concat(Setups(), GuestSetups()) {
		for _, f := range s.Found {
			if !slices.Contains(profilesOf(s), f.Profile) {
				t.Errorf("%s has no profile %s, and never replays its seed %d", s.Name, f.Profile, f.Seed)
			}
		}
	}
}

// TestDraw shows that each fault has its number, which the seed alone decides.
func TestDraw(t *testing.T) {
	numbers := func(seed uint64) (list []uint64) {
		s := NewSchedule(overShares("nfs", false), "config", seed)
		for _, track := range s.Tracks {
			for _, step := range track {
				if step.Fault != nil {
					list = append(list, step.Fault.Draw)
				}
			}
		}
		return list
	}
	one, same, other := numbers(7), numbers(7), numbers(8)
	if len(one) != 1 || one[0] == 0 || !slices.Equal(one, same) || slices.Equal(one, other) {
		t.Errorf("got the numbers %d, again %d, of another seed %d, want one number for each seed", one, same, other)
	}
}

// TestSeed shows that a seed repeats a schedule, and that every profile of every setup has a schedule.
func TestSeed(t *testing.T) {
	for _, s := range Setups() {
		for _, profile := range profilesOf(s) {
			one, same, other := NewSchedule(s, profile, 7), NewSchedule(s, profile, 7), NewSchedule(s, profile, 8)
			if !reflect.DeepEqual(one, same) {
				t.Errorf("%s %s: a seed makes two schedules", s.Name, profile)
			}
			if one.size() == 0 || profile != "churn" && profile != "crowded" && profile != "slow" &&
				reflect.DeepEqual(one.Tracks, other.Tracks) {
				t.Errorf("%s %s: all seeds make one schedule", s.Name, profile)
			}
		}
	}
}
