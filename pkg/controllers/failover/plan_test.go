package failover

import (
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/machines"
)

func usual() timing {
	return timing{missed: 11 * time.Second, quiet: 15 * time.Second, lag: time.Minute}
}

func TestPlan(t *testing.T) {
	begin := time.Now()
	machine := identity{query: machines.Query{Node: "i-1"}}
	for name, c := range map[string]struct {
		sight  sight
		record record
		after  time.Duration // since the last sign of life
		want   act
	}{
		"works": {sight{ready: true}, record{}, 10 * time.Second, rest},
		"works, and its machine is new": {sight{ready: true, identity: machine},
			record{query: machine.query, born: begin.Add(-time.Hour)}, 0, learn},
		"works, but it has just started": {sight{ready: true, identity: machine}, record{query: machine.query, born: begin},
			0, rest},
		"works, and its machine is known": {
			sight{ready: true, identity: machine}, record{query: machine.query, born: begin.Add(-time.Hour), known: begin}, 0,
			rest,
		},
		"silent, before Kubernetes says so": {sight{ready: true}, record{}, 11 * time.Second, ask},
		"not Ready, and alive":              {sight{}, record{}, 0, ask},
		"silent, and being deleted":         {sight{going: true}, record{}, time.Hour, rest},
		"out of service":                    {sight{mark: ours}, record{renewed: true, marked: begin}, time.Hour, hold},
		"out of service since a moment": {sight{mark: ours}, record{marked: begin.Add(time.Minute)}, 90 * time.Second,
			finish},
		"out of service since a moment, and alive": {sight{mark: ours}, record{renewed: true, marked: begin}, time.Second,
			hold},
		"out of service, and Ready of long ago": {sight{mark: ours, ready: true}, record{renewed: true}, time.Hour, hold},
		"out of service, and seen for a moment": {sight{mark: ours, ready: true}, record{}, 0, hold},
		"out of service, alive and not Ready":   {sight{mark: ours}, record{renewed: true}, 0, hold},
		"out of service, back, with a volume": {sight{mark: ours, ready: true, inUse: 1}, record{renewed: true}, 0,
			hold},
		"out of service, back and clean":            {sight{mark: ours, ready: true}, record{renewed: true}, 0, release},
		"out of service by a person":                {sight{mark: theirs}, record{renewed: true}, time.Hour, rest},
		"out of service by a person, and it's back": {sight{mark: theirs, ready: true}, record{renewed: true}, 0, rest},
	} {
		c.record.life = begin
		if have := plan(c.sight, &c.record, begin.Add(c.after), usual()); have != c.want {
			t.Errorf("%s: %s, want %s", name, have, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	begin := time.Now()
	first, second := begin.Add(-24*time.Hour), begin.Add(-time.Hour)
	for name, c := range map[string]struct {
		answer machines.Machine
		record record
		after  time.Duration // since the last sign of life
		want   verdict
	}{
		"runs":             {machines.Machine{State: machines.Running, Began: first}, record{}, time.Hour, running},
		"is being stopped": {machines.Machine{State: machines.Stopping, Began: first}, record{}, time.Hour, stopping},
		"says nothing":     {machines.Machine{}, record{}, time.Hour, unknown},
		"says a new word":  {machines.Machine{State: "hibernated", Began: first}, record{}, time.Hour, unknown},
		"off for long":     {machines.Machine{State: machines.Stopped, Began: first}, record{}, time.Minute, proven},
		"terminated":       {machines.Machine{State: machines.Terminated, Began: first}, record{}, time.Minute, proven},
		"off, and it lives": {machines.Machine{State: machines.Stopped, Began: first}, record{known: first}, time.Second,
			alive},
		"perhaps an old word": {machines.Machine{State: machines.Stopped, Began: first}, record{}, 59 * time.Second,
			premature},
		"off since it was seen to run": {
			machines.Machine{State: machines.Stopped, Began: first}, record{known: first}, 11 * time.Second, proven,
		},
		"off, and it has missed no renewal": {
			machines.Machine{State: machines.Stopped, Began: first}, record{known: first}, 10 * time.Second, alive,
		},
		"off since a later start": {machines.Machine{State: machines.Stopped, Began: second}, record{known: first},
			15 * time.Second, proven},
		"off before the start that was seen": {
			machines.Machine{State: machines.Stopped, Began: first}, record{known: second}, 15 * time.Second, premature,
		},
		"off in an answer from before another": {
			machines.Machine{State: machines.Stopped, Began: first},
			record{newest: machines.Machine{State: machines.Running, Began: second}}, time.Hour, outdated,
		},
		"off in an answer from before it was terminated": {
			machines.Machine{State: machines.Stopped, Began: first},
			record{newest: machines.Machine{State: machines.Terminated, Began: first}}, time.Hour, outdated,
		},
		"runs in an answer from before it was off": {
			machines.Machine{State: machines.Running, Began: first},
			record{newest: machines.Machine{State: machines.Stopped, Began: first}}, time.Hour, outdated,
		},
		"off, and it lived on when the same was said before": {
			machines.Machine{State: machines.Stopped, Began: first}, record{off: word{began: first, refuted: true}}, time.Hour,
			refuted,
		},
		"off since a start after the one of which it was wrong": {
			machines.Machine{State: machines.Stopped, Began: second}, record{off: word{began: first, refuted: true}}, time.Hour,
			proven,
		},
	} {
		c.record.life = begin
		if have := judge(c.answer, begin.Add(c.after), &c.record, usual()); have != c.want {
			t.Errorf("%s: %s, want %s", name, have, c.want)
		}
	}
}

// TestDue checks how soon the manager asks again. Questions about forgotten machines become rarer after a while,
// because they delay others in the same batch.
func TestDue(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		what   act
		record record
		after  time.Duration // since the last question
		want   bool
	}{
		"silent":                          {ask, record{life: now.Add(-time.Hour)}, time.Second, true},
		"silent, and nothing is known":    {ask, record{life: now.Add(-30 * time.Second), vague: true}, time.Second, true},
		"silent for long, nothing known":  {ask, record{life: now.Add(-time.Hour), vague: true}, time.Second, false},
		"silent for long, asked long ago": {ask, record{life: now.Add(-time.Hour), vague: true}, 10 * time.Second, true},
		"not Ready, and alive":            {ask, record{life: now}, time.Second, false},
		"learns":                          {learn, record{life: now}, time.Second, false},
		"just out of service":             {finish, record{life: now.Add(-time.Minute), marked: now}, time.Second, true},
		"out of service for a while": {
			finish, record{life: now.Add(-time.Minute), marked: now.Add(-time.Minute)}, time.Second, false,
		},
	} {
		c.record.asked = now.Add(-c.after)
		if have := c.record.due(now, c.what, usual()); have != c.want {
			t.Errorf("%s: due is %t, want %t", name, have, c.want)
		}
	}
}

// TestUnknownWord checks that an unknown state does not become the newest answer.
func TestUnknownWord(t *testing.T) {
	r, now := &record{}, time.Now()
	r.note(machines.Machine{State: "hibernated", Began: now}, now, usual())
	if have := judge(machines.Machine{State: machines.Stopped, Began: now}, now, r, usual()); have != proven {
		t.Errorf("after a word that is not known it is %s, want %s", have, proven)
	}
}

// TestForgets checks that the known start of a machine is forgotten if the machine may have ended.
func TestForgets(t *testing.T) {
	begin := time.Now()
	seen := sight{uid: "1", boot: "a", system: "x", renewal: "1", identity: identity{query: machines.Query{Node: "i-1"}}}
	for name, c := range map[string]struct {
		change func(*sight)
		after  time.Duration
		keeps  bool
	}{
		"nothing":               {func(s *sight) { s.renewal = "2" }, 10 * time.Second, true},
		"another start":         {func(s *sight) { s.boot, s.renewal = "b", "2" }, 10 * time.Second, false},
		"a return from silence": {func(s *sight) { s.renewal = "2" }, time.Minute, false},
		"another Node object":   {func(s *sight) { s.uid = "2" }, 10 * time.Second, false},
		"another machine":       {func(s *sight) { s.query.Node = "i-2" }, 10 * time.Second, false},
		"no registration":       {func(s *sight) { s.identity = identity{doubt: "not registered"} }, 10 * time.Second, true},
	} {
		r := &record{}
		r.see(seen, begin, usual())
		r.life = begin.Add(time.Hour)
		r.note(machines.Machine{State: machines.Running, Began: begin}, begin.Add(time.Hour), usual())
		if r.known.IsZero() {
			t.Fatal("the machine was seen to run, and is not known")
		}
		s := seen
		c.change(&s)
		r.see(s, begin.Add(time.Hour+c.after), usual())
		if r.known.IsZero() == c.keeps {
			t.Errorf("%s: it is known: %t, want %t", name, !r.known.IsZero(), c.keeps)
		}
	}
}

// TestHeed checks which changes of a node's taints count as a new word that its machine is off.
func TestHeed(t *testing.T) {
	words := func(of mark, values ...string) sight { return sight{mark: of, words: values} }
	for name, c := range map[string]struct {
		before, after sight
		want          bool
	}{
		"a first taint":                {words(none), words(theirs, "a"), true},
		"another value":                {words(theirs, "a"), words(theirs, "b"), true},
		"another value beside it":      {words(theirs, "a"), words(theirs, "a", "b"), true},
		"another effect of the same":   {words(theirs, "a"), words(theirs, "a", "a"), false},
		"another order":                {words(theirs, "a", "b"), words(theirs, "b", "a"), false},
		"one of two is gone":           {words(theirs, "a", "b"), words(theirs, "b"), false},
		"ours":                         {words(none), words(ours, driverName), true},
		"ours beside a person's":       {words(theirs, "a"), words(ours, "a", driverName), true},
		"a person's beside ours":       {words(ours, driverName), words(ours, driverName, "a"), false},
		"a person's instead of ours":   {words(ours, driverName), words(theirs, "a"), true},
		"ours is gone from beside one": {words(ours, driverName, "a"), words(theirs, "a"), false},
		"nothing new":                  {words(ours, driverName), words(ours, driverName), false},
	} {
		first, later := time.Unix(1000, 0), time.Unix(2000, 0)
		r := &record{}
		r.heed(c.before, first)
		r.heed(c.after, later)
		if have := r.marked.Equal(later); have != c.want {
			t.Errorf("%s: it counts: %t, want %t", name, have, c.want)
		}
	}
}

// TestReplaced checks when a node counts as replaced by another machine. The driver's registration and the kubelet's
// report may be seen in either order.
func TestReplaced(t *testing.T) {
	first := sight{uid: "1", system: "x", identity: identity{query: machines.Query{Node: "i-1"}}}
	with := func(system, node string) sight {
		s := first
		s.system, s.query.Node = system, node
		return s
	}
	gone := with("y", "")
	gone.doubt = "not registered"
	for name, c := range map[string]struct {
		seen []sight
		want bool
	}{
		"nothing new":                        {[]sight{first}, false},
		"it is reported first":               {[]sight{with("y", "i-1")}, true},
		"it is reported, then registered":    {[]sight{with("y", "i-1"), with("y", "i-2")}, false},
		"it is registered first":             {[]sight{with("x", "i-2")}, false},
		"it is registered, then reported":    {[]sight{with("x", "i-2"), with("y", "i-2")}, false},
		"both at once":                       {[]sight{with("y", "i-2")}, false},
		"and a third one":                    {[]sight{with("x", "i-2"), with("y", "i-2"), with("z", "i-2")}, true},
		"the first one was away for a while": {[]sight{with("y", "i-1"), first}, false},
		"it has no name for a moment":        {[]sight{with("", "i-1"), first}, false},
		"the registration is gone":           {[]sight{gone}, true},
		"its cloud's ID is known now": {[]sight{{uid: "1", system: "x",
			identity: identity{query: machines.Query{Node: "i-1", ProviderID: "p"}}}}, false},
		"its cloud's ID is known now, and then it is another": {[]sight{{uid: "1", system: "x",
			identity: identity{query: machines.Query{Node: "i-1", ProviderID: "p"}}}, with("y", "i-1")}, true},
	} {
		r := &record{}
		last := first
		for _, s := range append([]sight{first}, c.seen...) {
			r.see(s, time.Now(), usual())
			last = s
		}
		if have := r.replaced(last); have != c.want {
			t.Errorf("%s: it is replaced: %t, want %t", name, have, c.want)
		}
	}
}
