package nfs

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
)

// seed decides when the victims are killed.
var seed = flag.Uint64("seed", 1, "the seed of what is random") //nolint:gochecknoglobals // A flag of a test binary can be registered here only.

// churnWord is the argument that makes the test's program the victim of TestKilled.
const churnWord = "churn"

// churn creates and removes volumes and snapshots until it is killed.
func churn(servers string) {
	instance, err := DefinitionOver(standin.Servers(servers)).Open(context.Background(), backends.Options{
		Driver: "nfs.test", DataDir: servers, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		panic(err)
	}
	e := askedOnce(instance)
	for i := range 4 {
		go func() {
			ctx := context.Background()
			for {
				spec := in(fmt.Sprint("v", i), fmt.Sprintf("ns/v%d", i), deleteData)
				_, _ = e.Create(ctx, spec) // The test checks the result afterwards.
				v, err := e.Find(ctx, spec)
				if err != nil {
					continue
				}
				snap := backends.SnapshotSpec{Name: fmt.Sprint("s", i), Volume: v.Handle}
				s, err := e.CreateSnapshot(ctx, snap)
				if err != nil {
					s, err = e.FindSnapshot(ctx, snap)
				}
				if err == nil {
					_ = e.DeleteSnapshot(ctx, s.Handle)
				}
				churnGroup(ctx, e, i, v.Handle)
				_ = e.Delete(ctx, v.Handle)
			}
		}()
	}
	select {}
}

// churnGroup creates and removes a group of a volume and another one.
func churnGroup(ctx context.Context, e *controllerSide, i int, volume string) {
	second := in(fmt.Sprint("w", i), fmt.Sprintf("ns/w%d", i), deleteData)
	_, _ = e.Create(ctx, second)
	w, err := e.Find(ctx, second)
	if err != nil {
		return
	}
	group := fmt.Sprint("g", i)
	g, err := e.CreateGroup(ctx, backends.GroupSpec{Name: group, Volumes: []string{volume, w.Handle}})
	if err != nil {
		g, err = e.FindGroup(ctx, group)
	}
	if err == nil {
		_ = e.DeleteGroup(ctx, g.Handle)
	}
	_ = e.Delete(ctx, w.Handle)
}

// A controller that is killed at any instant leaves a state with which the next one can continue: every name can be
// created and removed, and nothing is left in the end.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	check := w.canaries()
	w.must(os.MkdirAll(w.path("ns"), 0o755))
	before := photograph(t, w.root)
	servers := string(w.mount.(standin.Servers))
	notes := []string{filepath.Join(servers, knownFile), filepath.Join(servers, ownerFile)}
	missing := func(note string) bool { _, err := os.Lstat(note); return err != nil }
	rng := rand.New(rand.NewPCG(*seed, 1))
	t.Logf("-seed %d", *seed)
	for range 12 {
		victim := exec.CommandContext(t.Context(), "/proc/self/exe", churnWord, servers)
		victim.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		w.must(victim.Start())
		// On a busy machine, a process may take longer to start than a victim has to live. The first one has begun its work
		// once its notes are there, which stay.
		w.eventually("the first victim's notes", func() bool { return !slices.ContainsFunc(notes, missing) })
		<-time.After(time.Duration(50+rng.IntN(250)) * time.Millisecond)
		w.must(victim.Process.Kill())
		_ = victim.Wait() // by a signal
		w.reopen()
		for i := range 4 {
			w.settle(fmt.Sprint("v", i), fmt.Sprintf("ns/v%d", i), fmt.Sprint("s", i), fmt.Sprint("not g", i))
			w.settle(fmt.Sprint("w", i), fmt.Sprintf("ns/w%d", i), fmt.Sprint("not s", i), fmt.Sprint("g", i))
		}
	}
	w.removeForgotten()
	w.tidy(0, 0)
	if after := photograph(t, w.root); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("what is left is\n%q\nwant\n%q", after, before)
	}
	w.must(os.Remove(w.path("ns")))
	w.must(errors.Join(os.Remove(notes[0]), os.Remove(notes[1]))) // in the victims' data directory
	check()
}

// settle creates a volume, a snapshot of it and a group with it, whatever a dead controller left, and removes them.
func (w *world) settle(name, dir, snapshot, group string) {
	w.Helper()
	ctx := w.Context()
	spec := in(name, dir, deleteData)
	w.ask("creating", func() error { _, err := w.Create(ctx, spec); return unless(err, backends.Exists) })
	v, err := w.Find(ctx, spec)
	w.must(err)
	if info, err := os.Stat(filepath.Join(w.root, dir)); err != nil || !info.IsDir() {
		w.Errorf("VIOLATION: volume %s has no directory: %v", name, err)
	}
	snap := backends.SnapshotSpec{Name: snapshot, Volume: v.Handle}
	w.ask("taking a snapshot", func() error { _, err := w.CreateSnapshot(ctx, snap); return unless(err, backends.Exists) })
	s, err := w.FindSnapshot(ctx, snap)
	w.must(err)
	w.ask("deleting the snapshot", func() error { return w.DeleteSnapshot(ctx, s.Handle) })
	w.ask("taking a group snapshot", func() error {
		_, err := w.CreateGroup(ctx, backends.GroupSpec{Name: group, Volumes: []string{v.Handle}})
		return unless(err, backends.Exists)
	})
	g, err := w.FindGroup(ctx, group)
	w.must(err)
	w.ask("deleting the group", func() error { return w.DeleteGroup(ctx, g.Handle) })
	w.ask("deleting", func() error { return w.Delete(ctx, v.Handle) })
}

func unless(err error, kind backends.Kind) error {
	if backends.Is(err, kind) {
		return nil
	}
	return err
}

// ask retries as an orchestrator does, until the answer is final.
func (w *world) ask(what string, call func() error) {
	w.Helper()
	w.eventually(what, func() bool {
		err := call()
		if err != nil && !backends.Is(err, backends.Busy) && !backends.Is(err, backends.Unavailable) {
			w.Fatalf("%s: %v", what, err)
		}
		return err == nil
	})
}

// removeForgotten makes the janitor not wait for attempts that may be alive.
func (w *world) removeForgotten() {
	w.Helper()
	w.hurry(func(p *pace) { p.patience = 50 * time.Millisecond })
	w.ask("waking the janitor",
		func() error { return w.Delete(w.Context(), w.make(in("last", "last", deleteData)).Handle) })
}
