package chaos

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

var (
	full       = flag.Bool("full", false, "all points with all faults")
	only       = flag.Int("only", 0, "the number of the only point to disturb, with all faults")
	seed       = flag.Uint64("seed", 1, "what the short form chooses by")
	listPoints = flag.Bool("list", false, "list the points and disturb nothing")
	most       = flag.Int("most", 24, "how many faults of each scenario the short form has about")
)

// A worker and a victim run this program again.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case workerMode:
			os.Exit(runWorker(os.Args[2], os.Stdout))
		case victimMode:
			os.Exit(runVictim(os.Args[2], os.Args[3], os.Args[4]))
		}
	}
	os.Exit(m.Run())
}

// Whatever fails at any step, repeating the call leads to the same result as without the failure, and no data is lost
// and nothing is left behind.
func TestChaos(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: mounting and tracing need root")
	}
	if err := sweepDead(); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var tallies []*tally
	t.Run("scenarios", func(t *testing.T) {
		for _, s := range scenarios() {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				tally := runScenario(t, order{Scenario: s.name, Full: *full, Only: *only, Most: *most, Seed: *seed,
					List: *listPoints})
				mu.Lock()
				defer mu.Unlock()
				tallies = append(tallies, tally)
			})
		}
	})
	var table bytes.Buffer
	report(&table, tallies)
	if !mayResize() {
		fmt.Fprintln(&table, "NOT RUN: the growing of a mounted ext4: CAP_SYS_RESOURCE is missing here")
	}
	t.Logf("seed %d\n%s", *seed, table.String())
	wantMet(t, tallies)
}

// runScenario runs a scenario and checks the result.
func runScenario(t *testing.T, o order) *tally {
	t.Helper()
	tally := startWorker(t, o)
	if tally.Failure != "" {
		t.Errorf("%s cannot be run: %s", o.Scenario, tally.Failure)
	}
	for _, v := range tally.Violations {
		t.Errorf("VIOLATION: %s", v)
	}
	if tally.Missed*2 > tally.faults() {
		t.Errorf("%s: %d of %d faults did not come about", o.Scenario, tally.Missed, tally.faults())
	}
	return tally
}

// wantMet checks that nearly all faults came about. It judges all scenarios together: other activity on the machine
// determines whether some points occur, and a scenario has so few faults that two missing ones are a large part.
func wantMet(t *testing.T, tallies []*tally) {
	t.Helper()
	missed, all := 0, 0
	for _, tally := range tallies {
		missed, all = missed+tally.Missed, all+tally.faults()
	}
	if missed*20 > all {
		t.Errorf("%d of %d faults did not come about", missed, all)
	}
}

// startWorker runs a scenario in a process with its own mount namespace.
func startWorker(t *testing.T, o order) *tally {
	t.Helper()
	o.Root = t.TempDir()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var out, words bytes.Buffer
	// On SIGTERM, a worker removes its mounts and loop devices.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", workerMode, string(text))
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.Stdout, cmd.Stderr = &out, &words
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	// The worker is killed when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		t.Fatalf("the worker of %q: %v\n%s", o.Scenario, err, words.String())
	}
	result := &tally{}
	if err := json.Unmarshal(out.Bytes(), result); err != nil {
		t.Fatalf("the worker of %q said %q: %v", o.Scenario, out.String(), err)
	}
	return result
}

// The harness finds planted defects.
func TestPlanted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: mounting and tracing need root")
	}
	for _, planted := range []struct{ plant, scenario, words string }{
		{forgetsLoop, "raw, unstage", "loop device"},
		{formatsTwice, "ext4, formatted, stage", "no such file"},
		{stacksMounts, "directory, publish", "too much: mount ~/pods/target"},
		{forgetsGroup, "directory, group, stage", "missing: state file"},
		{claimsSuccess, "directory, unpublish", "it said that it had succeeded"},
	} {
		t.Run(planted.plant, func(t *testing.T) {
			t.Parallel()
			tally := startWorker(t, order{Scenario: planted.scenario, Plant: planted.plant, Full: true, Enough: 1})
			if tally.Failure != "" {
				t.Fatal(tally.Failure)
			}
			if len(tally.Violations) == 0 || !strings.Contains(tally.Violations[0], planted.words) {
				t.Errorf("the violations are %q, want one that says %q", tally.Violations, planted.words)
			}
		})
	}
}
