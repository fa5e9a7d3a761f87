package crash

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/stowage-csi/stowage/tests/orchestrator"
)

// tally counts events.
type tally struct {
	mu       sync.Mutex
	kills    int
	starting int // kills during the start
	children int // kills with the child processes
	startups []time.Duration
	steps    map[string]int
	answers  map[string]int // successful calls, by method
	retries  map[string]int // attempts that ended with a retryable code
	slowest  map[string]time.Duration
}

func (c *tally) kill(p plan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kills++
	if p.starting {
		c.kills++
		c.starting++
	}
	if p.children {
		c.children++
	}
}

func (c *tally) started(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startups = append(c.startups, took)
}

func (c *tally) step(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.steps, what)
}

func (c *tally) attempt(a orchestrator.Attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	method := path.Base(a.Method)
	switch {
	case a.Code == codes.OK:
		add(&c.answers, method)
		if c.slowest == nil {
			c.slowest = map[string]time.Duration{}
		}
		c.slowest[method] = max(c.slowest[method], a.Took)
	case a.Broken:
		add(&c.retries, "no answer")
	default:
		add(&c.retries, a.Code.String())
	}
}

func add(counts *map[string]int, key string) {
	if *counts == nil {
		*counts = map[string]int{}
	}
	(*counts)[key]++
}

// check fails a test that has tested nothing.
func (c *tally) check(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kills < *kills {
		t.Errorf("there were %d kills of %d", c.kills, *kills)
	}
	for _, what := range c.missing() {
		t.Errorf("there was no %s: this run has shown nothing about it", what)
	}
}

// lacks returns the required events that have not occurred yet.
func (c *tally) lacks() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.missing()
}

func (c *tally) missing() (list []string) {
	if c.retries["no answer"] == 0 && *kills > 0 {
		list = append(list, "kill during a call")
	}
	for _, what := range []string{"create", "write", "snapshot", "expand", "verify", "delete"} {
		if c.steps[what] == 0 {
			list = append(list, what)
		}
	}
	return list
}

// report prints the events.
func (r *run) report(t *testing.T) {
	t.Helper()
	log := r.log(t)
	r.keepLogs(t, log.text)
	lifecycles := 0
	for _, w := range r.workers {
		lifecycles += w.lifecycles
	}
	c := &r.tally
	c.mu.Lock()
	defer c.mu.Unlock()
	var out strings.Builder
	fmt.Fprintf(&out, "seed %d\n", r.seed)
	fmt.Fprintf(&out, "kills          %d: %d with the child processes, %d during a start\n", c.kills, c.children,
		c.starting)
	fmt.Fprintf(&out, "starts         %s\n", spread(c.startups))
	fmt.Fprintf(&out, "lifecycles     %d whole ones\n", lifecycles)
	fmt.Fprintf(&out, "steps          %s\n", counted(c.steps))
	fmt.Fprintf(&out, "calls          %s\n", counted(c.answers))
	fmt.Fprintf(&out, "slowest, ms    %s\n", slow(c.slowest))
	fmt.Fprintf(&out, "asked again    %s\n", counted(c.retries))
	fmt.Fprintf(&out, "mended         %s\n", counted(log.mended))
	fmt.Fprintf(&out, "driver's log   %s\n", counted(log.messages))
	fmt.Fprintf(&out, "its refusals   %s", counted(log.refusals))
	t.Log(out.String())
}

func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	sorted := slices.Sorted(slices.Values(all))
	return fmt.Sprintf("%d: to the first answer %d ms in the median, %d ms at most",
		len(all), sorted[len(sorted)/2].Milliseconds(), sorted[len(sorted)-1].Milliseconds())
}

func counted(counts map[string]int) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", key, counts[key]))
	}
	return strings.Join(parts, ", ")
}

func slow(longest map[string]time.Duration) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(longest)) {
		parts = append(parts, fmt.Sprintf("%s %d", key, longest[key].Milliseconds()))
	}
	return strings.Join(parts, ", ")
}
