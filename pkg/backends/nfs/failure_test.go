package nfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
	"github.com/stowage-csi/stowage/tests/stall"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// slowServer is the server that stops in these tests.
const slowServer = "slow.test"

// withSlow adds a server whose share is a filesystem that can be made to hang.
type withSlow struct {
	standin.Servers
	slow *stall.Server
}

func (m *withSlow) Open(ctx context.Context, address export.Address) (*export.Root, error) {
	if address.Server != slowServer {
		return m.Servers.Open(ctx, address)
	}
	dir, err := os.Open(m.slow.Dir)
	if err != nil {
		return nil, err
	}
	return &export.Root{Dir: dir, Version: "4.2"}, nil
}

func (m *withSlow) Source(ctx context.Context, address export.Address, dir string) (backends.Source, error) {
	if address.Server != slowServer {
		return m.Servers.Source(ctx, address, dir)
	}
	return backends.Directory{Path: filepath.Join(m.slow.Dir, dir)}, nil
}

func onSlow(name string) backends.Spec {
	spec := specOf(name)
	spec.Parameters = &Parameters{Server: slowServer, Share: "/export"}
	return spec
}

// newSlowWorld returns a world with a server that can be stopped, besides the usual one.
func newSlowWorld(t *testing.T) (*world, *stall.Server) {
	slow := stall.Serve(t)
	w := newWorld(t)
	w.mount = &withSlow{Servers: w.mount.(standin.Servers), slow: slow}
	w.reopen()
	return w, slow
}

// A server that stops costs each call at most its deadline, the next calls nothing, and other servers' volumes nothing
// at all. When it answers again, everything recovers by itself, and no goroutine is left.
func TestServerStops(t *testing.T) {
	const limit, slack = 300 * time.Millisecond, 2 * time.Minute // Calls that wait for the server wait for ever.
	for name, call := range map[string]func(w *world, ctx context.Context, v *backends.Volume, s *backends.Snapshot) error{
		"create": func(w *world, ctx context.Context, _ *backends.Volume, _ *backends.Snapshot) error {
			_, err := w.Create(ctx, onSlow("new"))
			return unless(err, backends.Exists)
		},
		"find": func(w *world, ctx context.Context, _ *backends.Volume, _ *backends.Snapshot) error {
			_, err := w.Find(ctx, onSlow("one"))
			return err
		},
		"get": func(w *world, ctx context.Context, v *backends.Volume, _ *backends.Snapshot) error {
			_, err := w.Get(ctx, v.Handle)
			return err
		},
		"delete": func(w *world, ctx context.Context, v *backends.Volume, _ *backends.Snapshot) error {
			return unless(w.Delete(ctx, v.Handle), backends.NotFound)
		},
		"expand": func(w *world, ctx context.Context, v *backends.Volume, _ *backends.Snapshot) error {
			_, err := w.Expand(ctx, v.Handle, backends.CapacityRange{RequiredBytes: 8 << 20})
			return err
		},
		"list": func(w *world, ctx context.Context, _ *backends.Volume, _ *backends.Snapshot) error {
			_, _, err := w.List(ctx, backends.Page{})
			return err
		},
		"capacity": func(w *world, ctx context.Context, _ *backends.Volume, _ *backends.Snapshot) error {
			_, err := w.Capacity(ctx, backends.CapacityQuery{Parameters: onSlow("x").Parameters})
			return err
		},
		"snapshot": func(w *world, ctx context.Context, v *backends.Volume, _ *backends.Snapshot) error {
			_, err := w.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "new", Volume: v.Handle})
			return unless(err, backends.Exists)
		},
		"restore": func(w *world, ctx context.Context, _ *backends.Volume, s *backends.Snapshot) error {
			_, err := w.Restore(ctx, onSlow("restored"), s.Handle)
			return unless(err, backends.Exists)
		},
		"source": func(w *world, ctx context.Context, v *backends.Volume, _ *backends.Snapshot) error {
			_, err := w.node.Source(ctx, backends.Attachment{Handle: v.Handle})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, slow := newSlowWorld(t)
			v, err := w.Create(t.Context(), onSlow("one"))
			w.must(err)
			s, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "snap", Volume: v.Handle})
			w.must(err)
			before := runtime.NumGoroutine()
			slow.Stop(t)
			for range 4 {
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), limit) // Stimulus: the server is stopped.
				err := call(w, ctx, v, s)
				cancel()
				if !backends.Is(err, backends.Unavailable) && !backends.Is(err, backends.Busy) {
					t.Errorf("while the server is stopped: %v, want Unavailable or Busy", err)
				}
				if took := time.Since(begin); took > limit+slack {
					t.Errorf("it took %v, and had %v", took, limit)
				}
			}
			begin := time.Now()
			w.must(w.Delete(t.Context(), w.make(specOf("quick")).Handle))
			if took := time.Since(begin); took > slack {
				t.Errorf("another server's volume took %v", took)
			}
			slow.Continue(t)
			w.ask("recovering", func() error { return call(w, t.Context(), v, s) })
			w.eventually("the end of what hung", func() bool {
				return w.pool.GivenUp() == 0 && runtime.NumGoroutine() <= before+2
			})
		})
	}
}

// A server that stops in the middle of a deletion does not prevent a deletion on another server.
func TestDeletionBesideAServerThatStops(t *testing.T) {
	w, slow := newSlowWorld(t)
	hung := w.make(onSlow("hung"))
	_, h := w.opened(specOf("x"))
	spec := specOf("")
	for i, id := 0, ""; id == "" || stripe(id) != stripe(idOf(t, volumeKind, hung.Handle)); i++ {
		var err error
		spec = specOf(fmt.Sprint("quick", i))
		id, err = h.ID(string(volumeKind), spec.Name)
		w.must(err)
	}
	v := w.make(spec)
	slow.StopAt(t, stall.Change, 3) // The record is in the trash, under its usual name; the next is the box.
	ended := make(chan error, 1)
	go func() { ended <- w.Delete(t.Context(), hung.Handle) }()
	w.eventually("stopping in the midst of the deletion", func() bool { return slow.Stopped(t) })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.Delete(ctx, v.Handle); err != nil {
		t.Errorf("deleting on the other server: %v", err)
	}
	slow.Continue(t)
	w.must(<-ended)
}

// The end of the process does not wait for a server.
func TestCloseWhileServerIsStopped(t *testing.T) {
	w, slow := newSlowWorld(t)
	w.quiet(onSlow("one"))
	v, err := w.Create(t.Context(), onSlow("one"))
	w.must(err)
	slow.Stop(t)
	// Stimulus: the server answers nothing until it continues.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = w.Get(ctx, v.Handle)
	w.fails("Get", err, backends.Unavailable)
	w.shut() // It returns although the server is still stopped, and leaves no work.
	slow.Continue(t)
}

// The health of a volume whose server stops while it is asked.
func TestHealthOfAServerThatIsStopped(t *testing.T) {
	w, slow := newSlowWorld(t)
	w.quiet(onSlow("one"))
	v, err := w.Create(t.Context(), onSlow("one"))
	w.must(err)
	slow.StopAt(t, stall.Lookup, 1) // of the volume's record
	defer slow.Continue(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var issues []backends.HealthIssue
	ended := make(chan error, 1)
	go func() {
		var err error
		issues, err = w.Health(ctx, v.Handle)
		ended <- err
	}()
	w.eventually("asking the server", func() bool { return slow.Stopped(t) })
	cancel() // The call's time is over, however busy the machine is.
	if err := <-ended; err != nil || len(issues) != 1 || issues[0].Status != backends.Inaccessible {
		t.Errorf("the health is %+v, %v; want that it is inaccessible", issues, err)
	}
	storage, err := w.node.Inspect(t.Context())
	if err != nil || len(storage) != 1 || !storage[0].Unreachable {
		t.Errorf("the node's storage is %+v, %v; want one share that is unreachable", storage, err)
	}
}

// A server that exports something else, such as an empty directory because its disk is not mounted, has not lost the
// volumes: if the driver reported that, the callers would forget them.
func TestAnotherExport(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	w.shut()
	aside := w.root + ".aside"
	w.must(os.Rename(w.root, aside))
	w.must(os.Mkdir(w.root, 0o755))
	w.open()
	w.fails("Delete", w.Delete(t.Context(), v.Handle), backends.Unavailable, "export something else")
	_, err := w.Get(t.Context(), v.Handle)
	w.fails("Get", err, backends.Unavailable)
	_, err = w.node.Source(t.Context(), backends.Attachment{Handle: v.Handle})
	w.fails("Source", err, backends.Unavailable)
	_, err = w.Create(t.Context(), specOf("stranger")) // That does not turn the empty directory into a share.
	w.fails("Create", err, backends.Unavailable, "had one", "shares.json")
	w.shut()
	w.must(os.RemoveAll(w.root))
	w.must(os.Rename(aside, w.root))
	w.open()
	w.must(w.Delete(t.Context(), v.Handle))
}

// A server that temporarily exports an empty directory, under the same mount, says nothing about the share's contents.
func TestEmptyExportForAWhile(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	source := func() error {
		_, err := w.node.Source(t.Context(), backends.Attachment{Handle: v.Handle})
		return err
	}
	w.must(source())
	w.must(os.Rename(w.path(share.HomeName), w.root+".aside"))
	w.fails("Source", source(), backends.Unavailable, "export something else")
	_, err := w.Get(t.Context(), v.Handle)
	w.fails("Get", err, backends.Unavailable)
	if issues, err := w.Health(t.Context(), v.Handle); err != nil || len(issues) == 0 {
		t.Errorf("Health: got %v, %v, want what is wrong with the share", issues, err)
	}
	w.fails("Delete", w.Delete(t.Context(), v.Handle), backends.Unavailable)
	w.must(os.Rename(w.root+".aside", w.path(share.HomeName)))
	w.must(source())
	w.must(w.Delete(t.Context(), v.Handle))
}

func TestExportIsGone(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	w.shut()
	w.must(os.Rename(w.root, w.root+".aside"))
	w.open()
	w.fails("Delete", w.Delete(t.Context(), v.Handle), backends.Unavailable)
	w.must(os.Rename(w.root+".aside", w.root))
	w.must(w.Delete(t.Context(), v.Handle))
}

func TestReadOnlyAndFullShares(t *testing.T) {
	w := newWorld(t)
	w.must(unix.Mount("small", w.root, "tmpfs", 0, "size=64k"))
	defer func() { w.must(unix.Unmount(w.root, unix.MNT_DETACH)) }()
	spec := specOf("one")
	spec.Capacity.RequiredBytes = 4096
	v := w.make(spec)
	_, err := w.Create(t.Context(), specOf("too large"))
	w.fails("a volume that is larger than the share", err, backends.Exhausted, "free")
	w.must(os.WriteFile(w.path("fill"), make([]byte, 32<<10), 0o644))
	_ = os.WriteFile(w.path("fill2"), make([]byte, 32<<10), 0o644) // Until nothing is free.
	spec.Name, spec.Capacity.RequiredBytes = "two", 1
	_, err = w.Create(t.Context(), spec)
	w.fails("a volume on a full share", err, backends.Exhausted)
	w.must(errors.Join(os.Remove(w.path("fill")), os.Remove(w.path("fill2"))))
	w.must(unix.Mount("", w.root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	_, err = w.Create(t.Context(), spec)
	w.fails("a volume on a read-only share", err, backends.Unavailable, "read-only")
	w.fails("deleting there", w.Delete(t.Context(), v.Handle), backends.Unavailable, "read-only")
	if _, err := w.Get(t.Context(), v.Handle); err != nil {
		t.Errorf("reading there: %v", err)
	}
	w.must(unix.Mount("", w.root, "", unix.MS_REMOUNT, ""))
	w.must(w.Delete(t.Context(), v.Handle))
	w.make(spec)
	w.shut()
}

// A mount whose handles are stale is replaced, once for each call.
func TestStaleHandles(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	times := 0
	h, err := w.parse(volumeKind, v.Handle)
	w.must(err)
	var first *share.Share
	err = w.pool.With(t.Context(), h.address, "testing", func(_ context.Context, s *share.Share) error {
		if times++; times == 1 {
			first = s
			return &os.PathError{Op: "open", Path: "x", Err: unix.ESTALE}
		}
		if s == first {
			t.Error("the share was not mounted anew")
		}
		return nil
	})
	if err != nil || times != 2 {
		t.Errorf("after a stale handle: %v, done %d times; want success, twice", err, times)
	}
	err = w.pool.With(t.Context(), h.address, "testing", func(context.Context, *share.Share) error { return unix.ESTALE })
	if classify(err) != backends.Unavailable {
		t.Errorf("a handle that stays stale is %v, want Unavailable", classify(err))
	}
	w.must(w.Delete(t.Context(), v.Handle))
}

// Trash that cannot be removed is retried soon, so that nothing stays for long after a short disturbance.
func TestTrashIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	v := w.make(in("one", "one", deleteData))
	w.write("text", "one", "file")
	// if the test fails before it does so
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "chattr", "-R", "-i", w.root).Run() })
	testfs.Run(t, "chattr", "+i", w.path("one", "file"))
	w.must(w.Delete(t.Context(), v.Handle))
	w.eventually("noticing that it cannot be removed", func() bool {
		w.log.mu.Lock()
		defer w.log.mu.Unlock()
		return strings.Contains(w.log.text.String(), "trash could not be removed")
	})
	files, err := filepath.Glob(w.path(share.HomeName, share.Trash, "*", "file"))
	w.must(err)
	testfs.Run(t, "chattr", append([]string{"-i"}, files...)...)
	w.tidy(0, 0)
}

// An unreadable record in the trash does not prevent dead claims from being dropped.
func TestBadTrashStopsNoSweep(t *testing.T) {
	w := newWorld(t)
	w.make(specOf("zero"))
	w.shut()
	w.must(os.WriteFile(w.path(share.HomeName, share.Trash, "00112233445566778899aabbccddeeff-0123456789abcdef.json"),
		[]byte("garbage"), 0o600))
	w.must(os.Symlink("00112233445566778899aabbccddeef0-0123456789abcdef",
		w.path(share.HomeName, share.Claims, claimOf("x"))))
	w.open()
	w.make(specOf("two"))
	w.eventually("the sweep",
		func() bool { _, err := os.Lstat(w.path(share.HomeName, share.Claims, claimOf("x"))); return err != nil })
}
