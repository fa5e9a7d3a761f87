package disks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// cut is a context that ends when a condition holds.
type cut struct {
	context.Context
	isSo func() bool
}

func (c cut) Err() error {
	if c.isSo() {
		return context.Canceled
	}
	return c.Context.Err()
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// dirtyBench opens engines that do not run, one after another, over the same notes.
func dirtyBench(t *testing.T, config string) func() *Engine {
	t.Helper()
	c, err := discovery.Parse([]byte(config))
	check(t, err)
	run := t.TempDir()
	check(t, unix.Mount("run", run, "tmpfs", 0, ""))
	t.Cleanup(func() { check(t, unix.Unmount(run, 0)) })
	o := Options{Config: c, StateDir: t.TempDir(), LinkDir: filepath.Join(run, "links"),
		LinkPath: filepath.Join(t.TempDir(), "links"), Rescan: time.Minute, Log: slog.New(slog.DiscardHandler)}
	return func() *Engine {
		e, err := Open(o)
		check(t, err)
		return e
	}
}

// look returns the only volume, after telling the engine that nothing is wanted, as of a new NodeStorage. Concurrent
// tests may have the volume open for a moment.
func look(t *testing.T, e *Engine) report.Volume {
	t.Helper()
	check(t, e.Want(report.Wanted{}))
	for late := time.Now().Add(2 * time.Minute); ; {
		e.scanOnce(t.Context())
		s := e.State(t.Context(), "")
		if len(s.Volumes) != 1 {
			t.Fatalf("found are %+v (%s), want one volume", s.Volumes, s.Problem)
		}
		if v := s.Volumes[0]; !testfs.Passing(v.Message) || time.Now().After(late) {
			return v
		}
	}
}

// attempt makes an operation's attempt.
func attempt(ctx context.Context, e *Engine, o *operation) error {
	return alone(func() error { return e.attempt(ctx, o) })
}

// alone retries work on a device as long as it meets a concurrent test.
func alone(do func() error) error {
	for late := time.Now().Add(2 * time.Minute); ; {
		err := do()
		if err == nil || !testfs.Passing(err.Error()) || time.Now().After(late) {
			return err
		}
	}
}

// TestCutWipe ends the wipe of a disk that was never offered after its first step. The disk then looks blank, and is
// dirty until a complete wipe.
func TestCutWipe(t *testing.T) {
	image := filepath.Join(t.TempDir(), "disk.img")
	check(t, errors.Join(os.WriteFile(image, []byte("data of somebody"), 0o600), os.Truncate(image, 192<<20)))
	open := dirtyBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", testfs.Attach(t, image)))
	e := open()
	v := look(t, e)
	if v.State != report.NotBlank {
		t.Fatalf("it is %+v", v)
	}
	deletions := []report.Deletable{{ID: "d", Volume: v.Name, Method: method.Zero}}
	check(t, e.Want(report.Wanted{Deletions: deletions}))
	o := &operation{note: e.operations["d"]}
	isBegun := func() bool { return o.note.Position > 0 }
	if err := attempt(cut{t.Context(), isBegun}, e, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("a wipe that is cut short ends with %v", err)
	}
	check(t, e.Close())
	e = open()
	if v = look(t, e); v.State != report.Dirty {
		t.Errorf("after a wipe that was cut short it is %+v", v)
	}
	check(t, e.Want(report.Wanted{Deletions: deletions}))
	o = &operation{note: e.operations["d"]}
	check(t, errors.Join(attempt(t.Context(), e, o), e.complete(o)))
	if v = look(t, e); v.State != report.Available {
		t.Errorf("after a whole wipe it is %+v", v)
	}
	check(t, e.Close())
}

// TestCutEmptying ends the emptying of a filesystem at a mount inside it.
func TestCutEmptying(t *testing.T) {
	at := testfs.New(t, "ext4", 64)
	inside := filepath.Join(at, "inside")
	check(t, os.Mkdir(inside, 0o700))
	e := dirtyBench(t, fmt.Sprintf("mountPoints: [{paths: [%s]}]", at))()
	v := look(t, e)
	t.Run("mount", func(t *testing.T) {
		testfs.Bind(t, t.TempDir(), inside)
		check(t, e.Want(report.Wanted{Deletions: []report.Deletable{{ID: "d", Volume: v.Name, Method: method.Zero}}}))
		if err := e.attempt(t.Context(), &operation{note: e.operations["d"]}); err == nil {
			t.Error("a filesystem with a mount inside counts as emptied")
		}
	})
	if v = look(t, e); v.State != report.Dirty {
		t.Errorf("after an attempt to empty it, it is %+v", v)
	}
	check(t, e.Close())
}

// TestSoil checks what a wipe notes before it begins, and that an offer keeps the note.
func TestSoil(t *testing.T) {
	for name, c := range map[string]struct{ before, want *volumeNote }{
		"never offered": {nil, &volumeNote{Dirty: true, Cut: true}},
		"wiped": {&volumeNote{Offer: "a", Wiped: method.None, Left: "x"},
			&volumeNote{Offer: "a", Dirty: true, Cut: true}},
		"offered": {&volumeNote{Offer: "a", Dirty: true}, &volumeNote{Offer: "a", Dirty: true, Cut: true}},
		"offered, not proven": {&volumeNote{Offer: "a", Dirty: true, Unproven: true},
			&volumeNote{Offer: "a", Dirty: true, Unproven: true, DirtyBefore: true, Cut: true}},
		"restored": {&volumeNote{Offer: "a", Dirty: true, Unproven: true, DirtyBefore: true, Proven: "c"},
			&volumeNote{Offer: "a", Dirty: true, Unproven: true, DirtyBefore: true, Cut: true}},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := openNotes(t.TempDir())
			check(t, err)
			e := &Engine{notes: n, volumes: map[string]*volumeNote{}}
			if c.before != nil {
				e.volumes["disk-1"] = c.before
			}
			check(t, e.soil("disk-1"))
			check(t, e.noteOffer(report.Offer{ID: "b", Volume: "disk-1"}, nil))
			kept, err := readAll[volumeNote](n, volumesFolder)
			check(t, err)
			if !kept["disk-1"].DirtyBefore {
				t.Errorf("an offer after it forgets that it is dirty: %+v", kept["disk-1"])
			}
			if kept["disk-1"].Proven != "" {
				t.Errorf("an offer after it remembers whose data it was: %+v", kept["disk-1"])
			}
			e.volumes = map[string]*volumeNote{"disk-1": c.before}
			check(t, e.soil("disk-1"))
			if got := e.volumes["disk-1"]; *got != *c.want {
				t.Errorf("it is noted as %+v, want %+v", got, c.want)
			}
		})
	}
}
