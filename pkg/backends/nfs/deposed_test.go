package nfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
	"github.com/stowage-csi/stowage/tests/stall"
)

// realServer serves the same share as the slow server, but directly.
type realServer struct {
	standin.Servers
	real string
}

func (m realServer) Open(context.Context, export.Address) (*export.Root, error) {
	dir, err := os.Open(m.real)
	if err != nil {
		return nil, err
	}
	return &export.Root{Dir: dir, Version: "4.2"}, nil
}

// deposed is a controller that stops at a change, and its successor, which does not.
type deposed struct {
	*world
	slow *stall.Server
	// neverLed makes the stopped controller one that was never called before.
	neverLed bool
	// at is the kind of requests at which the controller is stopped; changes if empty.
	at stall.Request
}

func newDeposed(t *testing.T) *deposed {
	t.Helper()
	slow := stall.Serve(t)
	d := &deposed{world: newWorld(t), slow: slow}
	d.shut()
	d.root, d.mount = slow.Real, realServer{d.mount.(standin.Servers), slow.Real}
	d.open()
	return d
}

// tidy lets a new process with a short patience tidy up. No process does so before: the call that is to be stopped may
// take long on a busy machine, and would count as dead.
func (d *deposed) tidy(volumes, snapshots int) {
	d.Helper()
	d.hurry(func(p *pace) { p.patience = 200 * time.Millisecond })
	p, err := d.target(onSlow("x"))
	d.must(err)
	d.janitors.add(p.Address)
	d.world.tidy(volumes, snapshots)
	d.hurry(func(*pace) {})
}

// overtaken makes a call of a controller that is stopped at its n-th change, or for 0 before it receives the call. Then
// it lets others act, and lets the call resume. It returns false if the call makes fewer changes. at selects another
// kind of requests.
func (d *deposed) overtaken(n int, call func(e *controllerSide) error, others func()) bool {
	d.Helper()
	mount := &withSlow{Servers: d.mount.(realServer).Servers, slow: d.slow}
	instance, err := DefinitionOver(mount).Open(d.Context(), backends.Options{
		Driver: "nfs.test", DataDir: d.TempDir(), NodeID: "node-1", NodeOnly: true, Config: &Config{},
		Log: slog.New(slog.NewTextHandler(d.log, nil)),
	})
	d.must(err)
	defer func() { d.must(backendtest.Close(d.Context(), instance)) }()
	stopped := &world{TB: d.TB, controllerSide: askedOnce(instance), log: d.log}
	if !d.neverLed {
		stopped.leadsOn(onSlow("x"))
	}
	if n == 0 { // It receives the call after everything is over.
		others()
		d.Logf("called late it ended with: %v", call(stopped.controllerSide))
		return true
	}
	if !d.neverLed {
		d.shut() // Its janitor, and its looks at the remains, would leave fewer changes to the other one.
	}
	d.slow.StopAt(d, cmp.Or(d.at, stall.Change), n)
	ended := make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		failed = call(stopped.controllerSide)
		d.Logf("overtaken at change %d it ended with: %v", n, failed)
	}()
	defer func() {
		d.slow.Continue(d) // also when the test fails meanwhile
		<-ended
	}()
	reached := d.reached(stopped, ended)
	if !d.neverLed {
		d.open()
	}
	if !reached {
		d.slow.Continue(d)
		if failed != nil {
			d.Errorf("it made less than %d changes, and nobody was called meanwhile: %v", n, failed)
		}
		return false
	}
	others()
	d.slow.Continue(d)
	<-ended
	d.eventually("a look of its janitor", stopped.janitorsLook())
	return true
}

// reached waits until the server has stopped at a change. It returns false if the call has ended without stopping, and
// the janitor has looked since and did not stop either.
func (d *deposed) reached(by *world, ended <-chan struct{}) bool {
	d.Helper()
	looked := by.janitorsLook()
	d.eventually("coming to a change, or to the end", func() bool {
		select {
		case <-ended:
			return looked() || d.slow.Stopped(d)
		default:
			return d.slow.Stopped(d)
		}
	})
	return d.slow.Stopped(d)
}

// A controller is stopped in the middle of a deletion, while another finishes it and creates the volume again. When it
// resumes, it does not touch the new volume.
func TestDeposedDeletion(t *testing.T) {
	for onDelete, least := range map[string]int{deleteData: 14, archiveData: 12} {
		t.Run(onDelete, func(t *testing.T) {
			d := newDeposed(t)
			spec := onSlow("one")
			spec.Parameters.(*Parameters).SubDir, spec.Parameters.(*Parameters).OnDelete = "dir/one", onDelete
			n := 0
			for d.overtakenDeletion(n, spec) {
				n++
			}
			d.tidy(0, 0)
			if n-1 < least {
				t.Errorf("a deletion and its janitor came to %d changes, want %d at least", n-1, least)
			}
			archives, err := filepath.Glob(d.path("dir", "archived-*"))
			d.must(err)
			if want := 2*n + 1; onDelete == archiveData && len(archives) != want {
				t.Errorf("there are %d archives of %d volumes", len(archives), want)
			}
		})
	}
}

// overtakenDeletion creates a volume, whose deletion is stopped at the n-th change and overtaken. It returns false if
// there are fewer.
func (d *deposed) overtakenDeletion(n int, spec backends.Spec) bool {
	d.Helper()
	v := d.make(spec)
	d.write("old", "dir", "one", "old")
	stopped := d.overtaken(n, func(e *controllerSide) error { return e.Delete(d.Context(), v.Handle) }, func() {
		d.ask("deleting", func() error { return unless(d.Delete(d.Context(), v.Handle), backends.NotFound) })
		d.ask("making it anew", func() error { _, err := d.Create(d.Context(), spec); return err })
		d.write("new", "dir", "one", "new")
	})
	if stopped {
		d.held(fmt.Sprint("change ", n), spec)
	}
	d.ask("deleting", func() error { return unless(d.Delete(d.Context(), v.Handle), backends.NotFound) })
	d.tidy(0, 0)
	return stopped
}

// held checks that a volume still has its data, its record and its claim.
func (d *deposed) held(when string, spec backends.Spec) {
	d.Helper()
	if _, err := os.Stat(d.path("dir", "one", "new")); err != nil {
		d.Errorf("VIOLATION: %s: the data of the new volume: %v", when, err)
	}
	if _, err := os.Stat(d.path("dir", "one", "old")); !errors.Is(err, fs.ErrNotExist) {
		d.Errorf("VIOLATION: %s: the data of the old volume: %v", when, err)
	}
	v, err := d.Find(d.Context(), spec)
	if err != nil {
		d.Errorf("VIOLATION: %s: the new volume: %v", when, err)
		return
	}
	r := d.recordOf(v)
	if holder, err := os.Readlink(d.path(share.HomeName, share.Claims, claimOf("dir/one"))); err != nil ||
		holder != r.key() {
		d.Errorf("VIOLATION: %s: the directory is of %s, want %s (%v)", when, holder, r.key(), err)
	}
}
