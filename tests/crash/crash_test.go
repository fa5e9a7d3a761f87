package crash

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/localpools"
	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/orchestrator"
)

var (
	kills   = flag.Int("kills", 12, "how many times the driver is killed")
	workers = flag.Int("workers", 8, "how many volumes are worked on at a time")
	seed    = flag.Uint64("seed", 1, "the plan's seed; 0 for a new one")
	binary  = flag.String("binary", "", "the driver's binary; built when it is not given")
	hasty   = flag.Int("hasty", 10, "how many calls out of a hundred are given up early and asked again")
	keep    = flag.String("keep", "", "a directory for the driver's whole log and the whole history")
)

// prefix is the prefix of the test's directories.
const prefix = "stowage-crash"

// hangLimit is the limit for the workers to stop after the last kill. Only a call or a file that hangs takes that long.
const hangLimit = 2 * time.Minute

func TestMain(m *testing.M) { os.Exit(mountns.Isolate(m.Run)) }

func TestCrash(t *testing.T) {
	if missing := orchestrator.Missing(); len(missing) > 0 {
		t.Fatalf("this machine lacks what the test needs: %q", missing)
	}
	workspace, err := orchestrator.NewWorkspace(prefix)
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range workspace.Warnings {
		t.Errorf("leftover: %s", warning)
	}
	r := newRun(t, workspace)
	t.Cleanup(func() { r.end(t) })
	r.crash(t)
	if !t.Failed() {
		r.settle(t)
	}
	if !t.Failed() {
		r.finish(t)
	}
	r.report(t)
}

// run is shared by the killer and the workers.
type run struct {
	seed    uint64
	driver  *orchestrator.Driver
	workers []*worker
	life    context.Context // ends all workers at the first violation
	cancel  context.CancelFunc
	halt    chan struct{} // closed after the last kill: workers stop before their next step
	history history       // of the process; each worker has its own
	tally   tally

	mu        sync.Mutex
	violation error
	violator  *worker
}

func newRun(t *testing.T, workspace *orchestrator.Workspace) *run {
	r := &run{seed: *seed, halt: make(chan struct{})}
	if r.seed == 0 {
		r.seed = rand.Uint64()
	}
	t.Logf("seed %d: to repeat the plan, -seed %d -kills %d -workers %d", r.seed, r.seed, *kills, *workers)
	r.life, r.cancel = context.WithCancel(context.Background())
	pools, err := localpools.Flag(workspace.Dir)
	if err != nil {
		t.Fatal(err)
	}
	r.driver = &orchestrator.Driver{
		Binary: driverBinary(t), Workspace: workspace, Backend: "local",
		Args: []string{"--log-format=json", "-v=4", "--node-id=node-1", pools},
	}
	for id := range *workers {
		w := &worker{id: id, run: r, rng: rand.New(rand.NewPCG(r.seed, uint64(id)))}
		policy := orchestrator.DefaultPolicy()
		policy.Attempt = impatience(r.seed, id)
		policy.Deadline = 2 * hangLimit // On a slow machine, a call may meet one kill after the other.
		client, err := r.driver.Dial(policy, w.observe)
		if err != nil {
			t.Fatal(err)
		}
		w.client = client
		r.workers = append(r.workers, w)
	}
	return r
}

// impatience limits each attempt of a worker. Sometimes the worker gives up early, while the driver works: the call is
// cancelled, and perhaps retried before the driver has noticed.
func impatience(seed uint64, id int) func() time.Duration {
	rng := rand.New(rand.NewPCG(seed, 2<<32+uint64(id)))
	return func() time.Duration {
		if rng.IntN(100) < *hasty {
			return between(rng, time.Millisecond, 100*time.Millisecond)
		}
		return 15 * time.Second
	}
}

func driverBinary(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(*binary)
	if err != nil {
		t.Fatal(err)
	}
	if *binary != "" {
		return path
	}
	path = filepath.Join(t.TempDir(), "stowage")
	if err := orchestrator.Build(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	return path
}

// crash kills the driver again and again while the workers work, and then stops them.
func (r *run) crash(t *testing.T) {
	if _, err := r.start(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, w := range r.workers {
		all.Go(w.work)
	}
	r.killAgainAndAgain()
	close(r.halt)
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(hangLimit):
		r.hung(done)
	}
	r.complain(t)
}

// hung finds the hanging worker, and thaws frozen filesystems, which can hang forever.
func (r *run) hung(done <-chan struct{}) {
	for _, w := range r.workers {
		if step := w.under(); step != "" {
			r.violated(w, errorf("worker %d hangs in %s for more than %s after the last kill", w.id, step, hangLimit))
		}
	}
	r.driver.Workspace.Thaw()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
	}
}

// settle checks, with the workers stopped, that exactly the expected objects exist and can be used.
func (r *run) settle(t *testing.T) {
	r.exactly(t, "after the last kill")
	r.each(func(w *worker) error { return w.verifyAll() })
	r.complain(t)
}

// finish deletes everything, and checks that nothing is left, even after one more start.
func (r *run) finish(t *testing.T) {
	r.each(func(w *worker) error { return w.deleteAll() })
	if r.complain(t); t.Failed() {
		return
	}
	r.exactly(t, "after everything was deleted")
	r.stop(t)
	r.noLeaks(t, "after the driver was stopped")
	if _, err := r.start(); err != nil {
		t.Error(err)
		return
	}
	r.exactly(t, "after one more start")
	r.stop(t)
	r.noLeaks(t, "after it was started and stopped once more")
	r.tally.check(t)
	for _, complaint := range r.log(t).errors {
		t.Errorf("the driver's log has an error: %s", complaint)
	}
}

// each makes all workers run a function concurrently.
func (r *run) each(do func(w *worker) error) {
	var all sync.WaitGroup
	for _, w := range r.workers {
		all.Go(func() {
			if err := do(w); err != nil {
				r.violated(w, err)
			}
		})
	}
	all.Wait()
}

// exactly checks that the driver lists exactly the objects in the workers' models.
func (r *run) exactly(t *testing.T, when string) {
	t.Helper()
	var wantVolumes, wantSnapshots []string
	for _, w := range r.workers {
		volumes, snapshots := w.ids()
		wantVolumes, wantSnapshots = append(wantVolumes, volumes...), append(wantSnapshots, snapshots...)
	}
	client := r.workers[0].client
	volumes, err := client.VolumeIDs(r.life)
	r.same(t, when, "volumes", volumes, wantVolumes, err)
	snapshots, err := client.SnapshotIDs(r.life)
	r.same(t, when, "snapshots", snapshots, wantSnapshots, err)
}

func (r *run) same(t *testing.T, when, what string, got, want []string, err error) {
	t.Helper()
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s the driver's %s are\n  %q, want\n  %q (error %v)", when, what, got, want, err)
	}
}

func (r *run) noLeaks(t *testing.T, when string) {
	t.Helper()
	leaks, err := orchestrator.Leaks(r.driver.Workspace.Data(), r.driver.Workspace.Mounts())
	if err != nil {
		t.Error(err)
	}
	for _, leak := range leaks {
		t.Errorf("%s there is still the %s", when, leak)
	}
}

// end removes everything, whatever the result.
func (r *run) end(t *testing.T) {
	r.cancel()
	if r.driver.Running() {
		if err := r.driver.Kill(true); err != nil {
			t.Error(err)
		}
	}
	for _, w := range r.workers {
		if err := w.client.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := r.driver.Workspace.Remove(); err != nil {
		t.Errorf("the test's directory could not be removed: %v", err)
	}
}
