package adversary

import (
	"flag"
	"fmt"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/orchestrator"
	"github.com/stowage-csi/stowage/tests/stall"
)

var (
	schedules = flag.Int("schedules", 0, "how many schedules of each setup; 0 for those of the short form")
	budget    = flag.Duration("budget", 0, "make as many schedules as this time allows, in place of a number of them")
	only      = flag.String("setup", "", "the one setup, or all")
	profile   = flag.String("profile", "", "the one profile")
	seed      = flag.Uint64("seed", 0, "the first seed; 0 for 1, as the short form has it")
	shrinking = flag.Duration("shrink", time.Minute, "how long the shortest schedule is looked for")
	verbose   = flag.Bool("history", false, "print the history of a violation")
	known     = flag.String("known", "", "a regular expression of violations that are known, and not looked for")
	hasty     = flag.Bool("hasty", false, "take what is not done soon for wrong: for defects that are planted")
	guest     = flag.Bool("guest", false,
		"attack the setups that need a kernel of their own: in the guest of tests/vm/run only")
	going = flag.Bool("go-on", false, "go on after a violation, to count them")
)

func TestMain(m *testing.M) {
	stall.Main()
	Main()
	os.Exit(mountns.Isolate(m.Run))
}

// TestAdversary attacks each setup by each of its profiles.
func TestAdversary(t *testing.T) {
	if missing := orchestrator.Missing(); len(missing) > 0 {
		t.Fatalf("this machine lacks what the test needs: %q", missing)
	}
	if *planting {
		return // TestPlants is a separate run.
	}
	var chosen []Setup
	all := Setups()
	if *guest {
		all = GuestSetups()
	}
	for _, s := range all {
		if (s.Name == *only || *only == "" && (!s.Long || *profile != "")) && len(wanted(s)) > 0 {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		t.Fatalf("no setup %q has a profile %q: nothing would run", *only, *profile)
	}
	tally, began := NewTally(), time.Now()
	t.Cleanup(func() { report(t, tally, time.Since(began)) })
	for i, s := range chosen {
		t.Run(s.Name, func(t *testing.T) {
			// Each waits more than it computes. In the guest, one sets the clock and others stop the kernel's server. A setup
			// whose server stops runs alone, because the others ask all loop devices.
			if *budget == 0 && !*guest && s.servedDisk() < 0 {
				t.Parallel()
			}
			own := NewTally()
			t.Cleanup(func() {
				tally.Add(own)
				for _, kind := range own.vain() {
					t.Errorf("the fault %s was due %d times, and never took effect", kind, own.NotNow[kind])
				}
			})
			share := (*budget - time.Since(began)) / time.Duration(len(chosen)-i)
			attack(t, s, own, time.Now().Add(share))
		})
	}
}

// attack runs one schedule after the other over one world, until a violation.
func attack(t *testing.T, s Setup, tally *Tally, until time.Time) {
	run := &runner{T: t, setup: s, tally: tally, limits: patient()}
	if *hasty {
		run.limits = again()
	}
	if *known != "" {
		run.known = regexp.MustCompile(*known)
	}
	t.Cleanup(run.end)
	for n, next := range planned(s, wanted(s), until) {
		schedule := NewSchedule(s, next.Profile, next.Seed)
		began := time.Now()
		violation := run.try(schedule)
		took := time.Since(began)
		tally.Schedules[s.Name+" "+schedule.Profile]++
		tally.Took[s.Name+" "+schedule.Profile] += took
		if violation == "" {
			t.Logf("schedule %d, seed %d, profile %s: %v", n, schedule.Seed, schedule.Profile, took.Round(time.Millisecond))
			run.shows(schedule)
			continue
		}
		history := run.history
		run.limits = again()
		t.Errorf("VIOLATION in schedule %d, seed %d, profile %s, after %v: %s", n, schedule.Seed, schedule.Profile,
			took.Round(time.Millisecond), violation)
		short := Shrink(schedule, class(violation), time.Now().Add(*shrinking), run.try)
		t.Errorf("the shortest schedule found for it, of %d steps and faults in place of %d:\n%s", short.size(),
			schedule.size(), short)
		if *verbose {
			t.Logf("history:\n%s", strings.Join(history, "\n"))
		}
		if !*going {
			return
		}
	}
}

// wanted returns the requested profiles of a setup.
func wanted(s Setup) []string {
	return slices.DeleteFunc(profilesOf(s), func(name string) bool { return *profile != "" && name != *profile })
}

// rounds is how often the short form attacks a setup by each of its profiles, except those that take as long as all
// others. The seeds are always the same.
const rounds = 2

// planned returns the schedules of a setup by their numbers: new ones, whose profiles repeat, and then in every form
// those that have found a defect.
func planned(s Setup, names []string, until time.Time) iter.Seq2[int, Found] {
	return func(yield func(int, Found) bool) {
		order, n := inOrder(names), 0
		for ; goesOn(n, len(order), until); n++ {
			if !yield(n, Found{Profile: order[n%len(order)], Seed: max(*seed, 1) + uint64(n)}) {
				return
			}
		}
		for _, f := range s.Found {
			if !slices.Contains(names, f.Profile) {
				continue
			}
			if !yield(n, f) {
				return
			}
			n++
		}
	}
}

// inOrder returns the profiles in the order of their use, which then repeats.
func inOrder(names []string) (order []string) {
	short := *budget == 0 && *schedules == 0
	for round := range rounds {
		for _, name := range names {
			if round == 0 || short && name != "churn" {
				order = append(order, name)
			}
		}
	}
	return order
}

// goesOn reports whether another new schedule follows after n. With a budget there is always a first one: without any,
// nothing would be tested.
func goesOn(n, planned int, until time.Time) bool {
	switch {
	case *budget > 0:
		return n == 0 || time.Now().Before(until)
	case *schedules > 0:
		return n < *schedules
	}
	return n < planned
}

// runner tries schedules on a world, and on a new world after a violation.
type runner struct {
	*testing.T
	setup   Setup
	tally   *Tally
	known   *regexp.Regexp
	limits  limits
	world   *world
	history []string
}

// try returns the first violation.
func (r *runner) try(s Schedule) string {
	r.Helper()
	if r.setup.servedDisk() >= 0 {
		end, err := stall.Alone()
		if err != nil {
			r.Fatal(err)
		}
		defer end()
	}
	if r.world == nil {
		var err error
		if r.world, err = newWorld(r.T, r.setup, r.tally, r.known, r.limits); err != nil {
			r.Fatal(err)
		}
	}
	wrong := r.world.run(s)
	if len(wrong) == 0 {
		return ""
	}
	r.history = r.world.log
	r.end()
	return wrong[0]
}

// shows checks that a schedule without a violation could have shown one.
func (r *runner) shows(s Schedule) {
	r.Helper()
	if r.setup.servedDisk() < 0 {
		return
	}
	if vain := r.world.silence.vain(); vain != "" {
		r.Errorf("the schedule of seed %d, profile %s, has tested nothing: %s", s.Seed, s.Profile, vain)
	}
}

func (r *runner) end() {
	if r.world == nil {
		return
	}
	if err := r.world.close(); err != nil {
		r.Logf("taking the world down: %v", err)
	}
	r.world = nil
}

// oftenDue is how many times a fault must have been due before it counts as one that never takes effect.
const oftenDue = 20

// vain returns the faults that were due often, and never took effect: they find nothing.
func (t *Tally) vain() (kinds []string) {
	for _, kind := range sorted(t.NotNow) {
		if t.NotNow[kind] >= oftenDue && t.Faults[kind] == 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func report(t *testing.T, tally *Tally, took time.Duration) {
	t.Helper()
	var out strings.Builder
	sum, calls := 0, 0
	for _, name := range sorted(tally.Schedules) {
		n := tally.Schedules[name]
		sum += n
		fmt.Fprintf(&out, "%-22s %5d schedules, %.2f a second\n", name, n, float64(n)/max(tally.Took[name].Seconds(), 0.001))
	}
	for _, n := range tally.Calls {
		calls += n
	}
	fmt.Fprintf(&out, "%d schedules, %d calls in %v\ncalls  %s\ncodes  %s\nfaults %s\nnot now %s", sum, calls,
		took.Round(time.Second), counted(tally.Calls), counted(tally.Codes), counted(tally.Faults), counted(tally.NotNow))
	t.Log(out.String())
}

func sorted(counts map[string]int) (names []string) {
	for name := range counts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func counted(counts map[string]int) string {
	var parts []string
	for _, name := range sorted(counts) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}
