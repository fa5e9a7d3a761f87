package nfs

import (
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
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
	"github.com/stowage-csi/stowage/tests/stall"
)

// realServer has what the slow server serves, without what makes that slow.
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
	// neverLed has the controller that is stopped be one that was never called before.
	neverLed bool
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

// tidy has a new process tidy up that soon takes for dead what shows no life. Nobody does before: the call that is to
// be stopped may take long on a busy machine, and would be taken for dead.
func (d *deposed) tidy(volumes, snapshots int) {
	d.Helper()
	d.hurry(func(p *pace) { p.patience = 200 * time.Millisecond })
	p, err := d.target(onSlow("x"))
	d.must(err)
	d.janitors.add(p.Address)
	d.world.tidy(volumes, snapshots)
	d.hurry(func(*pace) {})
}

// overtaken makes a call of a controller that is stopped at its n-th change, or for 0 before it hears of the call, lets
// others do something, and lets it go on. It returns false when the call makes less changes.
func (d *deposed) overtaken(n int, call func(e *controllerSide) error, others func()) bool {
	d.Helper()
	mount := &withSlow{Servers: d.mount.(realServer).Servers, slow: d.slow}
	instance, err := DefinitionOver(mount).Open(d.Context(), backends.Options{
		Driver: "nfs.test", DataDir: d.TempDir(), NodeID: "node-1", NodeOnly: true, Config: &Config{},
		Log: slog.New(slog.NewTextHandler(d.log, nil)),
	})
	d.must(err)
	defer func() { d.must(instance.Close()) }()
	stopped := askedOnce(instance)
	if !d.neverLed {
		(&world{TB: d.TB, controllerSide: stopped, log: d.log}).leadsOn(onSlow("x"))
	}
	if n == 0 { // It hears of the call when all is over.
		others()
		d.Logf("called late it ended with: %v", call(stopped))
		return true
	}
	d.slow.StopAt(d, stall.Change, n)
	ended := make(chan struct{})
	var failed error
	go func() {
		defer close(ended)
		failed = call(stopped)
		d.Logf("overtaken at change %d it ended with: %v", n, failed)
	}()
	defer func() { <-ended }()
	for !d.slow.Stopped(d) {
		select {
		// Stimulus: a pause between two looks.
		case <-time.After(2 * time.Millisecond):
		case <-ended:
			if <-time.After(50 * time.Millisecond); !d.slow.Stopped(d) { // Its janitor may have come to it, or come to it yet.
				d.slow.Continue(d)
				if failed != nil {
					d.Errorf("it made less than %d changes, and nobody was called meanwhile: %v", n, failed)
				}
				return false
			}
		}
	}
	others()
	d.slow.Continue(d)
	<-ended
	<-time.After(100 * time.Millisecond) // for its janitor
	return true
}

// A controller that is stopped in the middle of a deletion, while another finishes that and makes the volume anew, does
// not touch the new one when it goes on.
func TestDeposedDeletion(t *testing.T) {
	for _, onDelete := range []string{deleteData, archiveData} {
		t.Run(onDelete, func(t *testing.T) {
			d := newDeposed(t)
			spec := onSlow("one")
			spec.Parameters.(*Parameters).SubDir, spec.Parameters.(*Parameters).OnDelete = "dir/one", onDelete
			n := 0
			for d.overtakenDeletion(n, spec) {
				n++
			}
			d.tidy(0, 0)
			if few := 6; n < few {
				t.Errorf("a deletion makes %d changes, want %d at least: nothing was tested", n-1, few)
			}
			archives, err := filepath.Glob(d.path("dir", "archived-*"))
			d.must(err)
			if want := 2*n + 1; onDelete == archiveData && len(archives) != want {
				t.Errorf("there are %d archives of %d volumes", len(archives), want)
			}
		})
	}
}

// overtakenDeletion makes a volume, of which the deletion is stopped at the n-th change and overtaken. It returns false
// when there are less.
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

// held reports what has become of a volume that is nobody else's.
func (d *deposed) held(when string, spec backends.Spec) {
	d.Helper()
	if _, err := os.Stat(d.path("dir", "one", "new")); err != nil {
		d.Errorf("%s: the data of the new volume: %v", when, err)
	}
	if _, err := os.Stat(d.path("dir", "one", "old")); !errors.Is(err, fs.ErrNotExist) {
		d.Errorf("%s: the data of the old volume: %v", when, err)
	}
	v, err := d.Find(d.Context(), spec)
	if err != nil {
		d.Errorf("%s: the new volume: %v", when, err)
		return
	}
	r := d.recordOf(v)
	if holder, err := os.Readlink(d.path(share.HomeName, share.Claims, claimOf("dir/one"))); err != nil ||
		holder != r.key() {
		d.Errorf("%s: the directory is of %s, want %s (%v)", when, holder, r.key(), err)
	}
}
