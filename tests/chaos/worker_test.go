package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// order is a worker's task.
type order struct {
	Scenario string
	Root     string
	Plant    string
	Full     bool
	Only     int // the number of a single point; 0 for all
	Most     int // the approximate number of runs of the short form
	Seed     uint64
	Enough   int // the number of violations at which to stop
	List     bool
}

// tally holds the results of a scenario.
type tally struct {
	Scenario   string
	Points     int
	Calls      int // the number of different names of calls
	Kills      int
	Errors     map[string]int // by the errno's name
	TimeOuts   int
	Recovered  int
	Missed     int // faults whose point did not occur
	Violations []string
	Overran    []string // points at which a hanging call held the operation beyond its time
	Unsteady   []string // differences between two undisturbed runs
	Listing    []string // all points, if requested
	Failure    string   // the reason if the scenario could not be run
}

// runWorker runs one scenario. It is the main function of a worker.
func runWorker(text string, out io.Writer) int {
	// ptrace(2) requires one thread, and the mounts are the process's.
	runtime.LockOSThread()
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	t := work(ctx, o)
	if err := json.NewEncoder(out).Encode(t); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// work runs a scenario in its own tmpfs, which is fast and ends with the worker.
func work(ctx context.Context, o order) *tally {
	t := &tally{Scenario: o.Scenario, Errors: map[string]int{}}
	s, ok := find(o.Scenario)
	if !ok {
		t.Failure = "there is no such scenario"
		return t
	}
	root := filepath.Join(o.Root, rootName(os.Getppid()))
	err := unix.Mount("chaos", o.Root, "tmpfs", 0, "size=4g")
	if err = errors.Join(err, hangCurtain(), os.Mkdir(root, 0o755)); err != nil {
		t.Failure = fmt.Sprintf("prepare the namespace: %v", err)
		return t
	}
	b := &bench{world: &world{scenario: s, root: root}}
	if err := b.run(ctx, o, t); err != nil {
		t.Failure = err.Error()
	}
	if err := b.sweep(context.WithoutCancel(ctx)); err != nil && t.Failure == "" {
		t.Failure = err.Error()
	}
	return t
}

// run lists the points and runs the faults.
func (b *bench) run(ctx context.Context, o order, t *tally) error {
	points, err := b.survey(ctx, t)
	if err != nil {
		return err
	}
	b.plant = o.Plant
	points = thin(points, o.writes())
	t.Points, t.Calls = len(points), names(points)
	if o.List {
		t.list(points)
		return nil
	}
	for _, f := range o.choose(points) {
		if err := b.one(ctx, o, f, t); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		if o.Enough > 0 && len(t.Violations) >= o.Enough {
			return nil
		}
	}
	return nil
}

// survey creates the volume and lists the points that two undisturbed runs have in common: while another scenario
// attaches a loop device, calls may occur once and not again.
func (b *bench) survey(ctx context.Context, t *tally) ([]point, error) {
	if err := b.makeBaseline(ctx); err != nil {
		return nil, fmt.Errorf("make the volume: %w", err)
	}
	b.pristine = b.observe()
	points, err := b.undisturbed(ctx)
	if err != nil {
		return nil, err
	}
	again, err := b.undisturbed(ctx)
	t.compare(labels(points), labels(again))
	return common(points, again), err
}

// mostTries is the number of tries for a fault whose point does not occur.
const mostTries = 10

// one makes one run and counts it.
func (b *bench) one(ctx context.Context, o order, f fault, t *tally) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	result, err := b.disturb(ctx, f, f.hash(o.Seed)%2 == 0)
	// Other activity on the machine determines whether some points occur.
	for tries := 1; err == nil && !result.met && tries < mostTries; tries++ {
		result, err = b.disturb(ctx, f, f.hash(o.Seed)%2 == 0)
	}
	if err != nil {
		return err
	}
	t.count(f, result)
	if result.violation == "" {
		return nil
	}
	if err := b.sweep(ctx); err != nil {
		return err
	}
	return b.makeBaseline(ctx)
}

// list records the points.
func (t *tally) list(points []point) {
	for _, p := range points {
		t.Listing = append(t.Listing, p.String())
	}
}

// count adds an outcome.
func (t *tally) count(f fault, o outcome) {
	switch {
	case !o.met:
		t.Missed++
	case f.kind == failure:
		t.Errors[unix.ErrnoName(f.errno)]++
	case f.kind == timeout:
		t.TimeOuts++
	default:
		t.Kills++
	}
	if o.overran {
		t.Overran = append(t.Overran, f.point.String())
	}
	if o.violation == "" {
		t.Recovered++
		return
	}
	answer := "it did not answer"
	if o.reply != nil {
		answer = fmt.Sprintf("it answered ok=%t %s %s", o.reply.OK, o.reply.Kind, o.reply.Text)
	}
	t.Violations = append(t.Violations, fmt.Sprintf("%s: %s\n      %s\n      %s", t.Scenario, f, answer, o.violation))
}

// faults returns the number of faults, including those that did not come about.
func (t *tally) faults() int {
	count := t.Kills + t.TimeOuts + t.Missed
	for _, n := range t.Errors {
		count += n
	}
	return count
}

// compare records the differences between two undisturbed runs.
func (t *tally) compare(first, second []string) {
	for i := range max(len(first), len(second)) {
		if i >= len(first) || i >= len(second) || first[i] != second[i] {
			t.Unsteady = append(t.Unsteady, fmt.Sprintf("from #%d on (%d and %d points): %s", i+1, len(first), len(second),
				at(first, i)+" | "+at(second, i)))
			return
		}
	}
}

func at(list []string, i int) string {
	if i >= len(list) {
		return "nothing"
	}
	return list[i]
}

// names returns the number of different calls.
func names(points []point) int {
	seen := map[string]bool{}
	for _, p := range points {
		seen[p.name] = true
	}
	return len(seen)
}

// writes returns the number of a command's writes that are points.
func (o order) writes() int {
	if o.Full {
		return 12
	}
	return 4
}

// choose selects the faults of this form: all of them; or at least one timeout, one fault for each name of a call, and
// as many others as time permits.
func (o order) choose(points []point) []fault {
	var chosen, rest, late []fault
	seen := map[string]bool{}
	for _, p := range points {
		if o.Only != 0 && p.number != o.Only {
			continue
		}
		faults := faultsAt(p)
		if o.Full || o.Only != 0 {
			chosen = append(chosen, faults...)
			continue
		}
		if p.name != "ioctl" { // a hanging request to a loop device takes the whole limit, which is for the full form
			late = append(late, slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return f.kind != timeout })...)
		}
		faults = slices.DeleteFunc(faults, func(f fault) bool { return f.kind == timeout })
		slices.SortFunc(faults, o.byHash)
		if !seen[p.name] {
			seen[p.name] = true
			chosen = append(chosen, faults[0])
			faults = faults[1:]
		}
		if len(faults) > 0 {
			rest = append(rest, faults[0])
		}
	}
	slices.SortFunc(late, o.byHash)
	rest = append(rest, late[min(1, len(late)):]...)
	chosen = append(chosen, late[:min(1, len(late))]...)
	slices.SortFunc(rest, o.byHash)
	for _, f := range rest {
		if len(chosen) >= o.Most {
			break
		}
		chosen = append(chosen, f)
	}
	return unique(chosen)
}

// unique removes duplicates.
func unique(faults []fault) []fault {
	seen := map[string]bool{}
	return slices.DeleteFunc(faults, func(f fault) bool {
		before := seen[f.String()]
		seen[f.String()] = true
		return before
	})
}

func (o order) byHash(a, b fault) int {
	x, y := a.hash(o.Seed), b.hash(o.Seed)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func loopNode(number int) string { return "/dev/loop" + strconv.Itoa(number) }
