package share_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// counting opens a directory and counts how often.
type counting struct {
	dir    string
	opened atomic.Int64
	block  chan struct{} // nil, or opening waits for it
}

func (c *counting) Open(context.Context, export.Address) (*export.Root, error) {
	c.opened.Add(1)
	if c.block != nil {
		<-c.block
	}
	dir, err := os.Open(c.dir)
	return &export.Root{Dir: dir, Version: "4.2"}, err
}

func (c *counting) Source(context.Context, export.Address, string) (backends.Source, error) {
	return nil, errors.New("not asked for")
}

func (*counting) SameServer(_ context.Context, one, other string) bool { return one == other }

func address() export.Address { return export.Address{Server: "a", Path: "/x"} }

func newPool(t *testing.T, m export.Mounter, idle time.Duration) *share.Pool {
	p := share.NewPool(m, idle, slog.New(slog.DiscardHandler))
	t.Cleanup(p.Close)
	return p
}

func nothing(context.Context, *share.Share) error { return nil }

func TestOneMountForAll(t *testing.T) {
	m := &counting{dir: t.TempDir()}
	p := newPool(t, m, time.Minute)
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			if err := p.With(t.Context(), address(), "work", nothing); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := m.opened.Load(); n != 1 {
		t.Errorf("50 calls made %d mounts, want 1", n)
	}
}

func TestIdleSharesAreDropped(t *testing.T) {
	m := &counting{dir: t.TempDir()}
	p := newPool(t, m, 50*time.Millisecond)
	s, release, err := p.Hold(t.Context(), address())
	if err != nil {
		t.Fatal(err)
	}
	dir := s.Dir()
	<-time.After(150 * time.Millisecond)
	if len(p.Mounted()) != 1 {
		t.Error("a share that is used was dropped")
	}
	release()
	for deadline := time.Now().Add(2 * time.Minute); len(p.Mounted()) > 0; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("an idle share was not dropped")
		}
	}
	for deadline := time.Now().Add(2 * time.Minute); ; <-time.After(time.Millisecond) {
		if _, err := dir.Stat(); err != nil {
			break // Its descriptor is closed.
		}
		if time.Now().After(deadline) {
			t.Fatal("the descriptor of an idle share was not closed")
		}
	}
	if err := p.With(t.Context(), address(), "work", nothing); err != nil || m.opened.Load() != 2 {
		t.Errorf("after that: %v, %d mounts; want success and 2", err, m.opened.Load())
	}
}

// A hanging mount costs one thread, and refuses further calls at once.
func TestMountThatHangs(t *testing.T) {
	m := &counting{dir: t.TempDir(), block: make(chan struct{})}
	p := newPool(t, m, time.Minute)
	for i := range 5 {
		// Stimulus: the mount hangs until block is closed.
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := p.With(ctx, address(), "work", nothing)
		cancel()
		if !backends.Is(err, backends.Unavailable) {
			t.Errorf("call %d: %v, want Unavailable", i, err)
		}
	}
	if n := m.opened.Load(); n != 1 {
		t.Errorf("%d mounts hang, want 1", n)
	}
	close(m.block)
	for deadline := time.Now().Add(2 * time.Minute); p.GivenUp() > 0; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what hung has not ended")
		}
	}
	if err := p.With(t.Context(), address(), "work", nothing); err != nil {
		t.Error(err)
	}
}

// If several processes create a home at once, all get the same.
func TestHomeIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	ids := make(chan string, 8)
	var makers sync.WaitGroup
	for range 8 {
		makers.Go(func() {
			p := newPool(t, &counting{dir: dir}, time.Minute)
			err := p.With(t.Context(), address(), "work", func(_ context.Context, s *share.Share) error {
				h, err := s.Home(true)
				if err == nil {
					ids <- idOf(t, h)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	makers.Wait()
	close(ids)
	first := <-ids
	for id := range ids {
		if id != first {
			t.Errorf("one name has the IDs %s and %s", first, id)
		}
	}
	other := newPool(t, &counting{dir: t.TempDir()}, time.Minute)
	err := other.With(t.Context(), address(), "work", func(_ context.Context, s *share.Share) error {
		if _, err := s.Home(false); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a home that was not to be made: %v, want that there is none", err)
		}
		h, err := s.Home(true)
		if err == nil && idOf(t, h) == first {
			t.Error("a name has the same ID on two shares: it could be computed")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func idOf(t *testing.T, h *share.Home) string {
	id, err := h.ID("volume", "name")
	if err != nil {
		t.Error(err)
	}
	return id
}

// After a denial, the server is asked again by a new mount: the kernel would cache the answer.
func TestDeniedIsMountedAnew(t *testing.T) {
	c := &counting{dir: t.TempDir()}
	pool := share.NewPool(c, time.Hour, slog.New(slog.DiscardHandler))
	defer pool.Close()
	address := export.Address{Server: "s", Path: "/p"}
	for _, failure := range []error{&fs.PathError{Op: "open", Path: "x", Err: unix.EACCES}, unix.ENOSPC, nil} {
		err := pool.With(t.Context(), address, "testing", func(context.Context, *share.Share) error { return failure })
		if !errors.Is(err, failure) {
			t.Errorf("got %v, want %v", err, failure)
		}
	}
	if n := c.opened.Load(); n != 2 {
		t.Errorf("mounted %d times, want once more after what was denied", n)
	}
	for _, failure := range []error{nil, unix.ENOSPC, unix.ESTALE} {
		pool.Distrust(address, failure)
	}
	_, release, err := pool.Hold(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if n := c.opened.Load(); n != 3 {
		t.Errorf("mounted %d times, want once more after a stale handle", n)
	}
}

// After a server has not answered for long, the share is mounted anew, because the server's name may lead to another
// address by now. This is so even if the call was given up before. Until then the share counts as mounted.
func TestUnansweredIsMountedAnew(t *testing.T) {
	for name, waited := range map[string]bool{"in time": true, "late": false} {
		t.Run(name, func(t *testing.T) {
			m := &counting{dir: t.TempDir()}
			p := newPool(t, m, time.Hour)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answer := make(chan struct{})
			var dir *os.File
			if waited {
				close(answer)
			}
			err := p.With(ctx, address(), "work", func(_ context.Context, s *share.Share) error {
				dir = s.Dir()
				if !waited {
					cancel()
				}
				<-answer
				return &fs.PathError{Op: "open", Path: "x", Err: unix.ETIMEDOUT}
			})
			if waited != errors.Is(err, unix.ETIMEDOUT) || err == nil {
				t.Errorf("the call ends with %v", err)
			}
			if !waited {
				close(answer)
			}
			until(t, "the end of the work", func() bool { return p.GivenUp() == 0 })
			if n := len(p.Mounted()); n != 1 {
				t.Errorf("%d shares are mounted, want 1", n)
			}
			if err := p.With(t.Context(), address(), "work", nothing); err != nil || m.opened.Load() != 2 {
				t.Errorf("after that: %v, %d mounts; want success and 2", err, m.opened.Load())
			}
			until(t, "closing the earlier mount", func() bool { _, err := dir.Stat(); return err != nil })
		})
	}
}

// failing is a mounter whose mounts fail except the first.
type failing struct{ counting }

func (f *failing) Open(ctx context.Context, address export.Address) (*export.Root, error) {
	if f.opened.Load() > 0 {
		f.opened.Add(1)
		return nil, unix.EHOSTUNREACH
	}
	return f.counting.Open(ctx, address)
}

// A share has not answered for long, and cannot be mounted anew. The next call asks the present mount again.
func TestUnansweredIsAskedAgain(t *testing.T) {
	m := &failing{counting{dir: t.TempDir()}}
	p := newPool(t, m, time.Hour)
	for i, want := range []error{unix.ETIMEDOUT, unix.EHOSTUNREACH, nil} {
		err := p.With(t.Context(), address(), "work", func(context.Context, *share.Share) error { return want })
		if !errors.Is(err, want) {
			t.Errorf("call %d ends with %v, want %v", i, err, want)
		}
	}
	if n := m.opened.Load(); n != 2 {
		t.Errorf("mounted %d times, want 2: once more after no answer", n)
	}
}

// until waits for work in the background.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after two minutes", what)
		}
	}
}

// A mark is only in the home in which it was made, even if another home has a file of its name.
func TestMarkTellsHomesApart(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	homes := make([]*share.Home, 0, 3)
	for _, dir := range append(dirs, dirs[0]) {
		s, release, err := newPool(t, &counting{dir: dir}, time.Minute).Hold(t.Context(), address())
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		h, err := s.Home(true)
		if err != nil {
			t.Fatal(err)
		}
		homes = append(homes, h)
	}
	mark, err := homes[0].Mark()
	if err != nil {
		t.Fatal(err)
	}
	bears := func(h *share.Home, want bool) {
		t.Helper()
		if there, err := h.Bears(mark); there != want || err != nil {
			t.Errorf("got %t, %v; want %t", there, err, want)
		}
	}
	bears(homes[1], false)
	bears(homes[2], true)
	names, err := homes[0].Names(share.Staging, "")
	if err != nil || len(names) != 1 {
		t.Fatalf("in staging there is %q, %v; want the mark", names, err)
	}
	for _, text := range []string{"", "another text of as many le"} {
		path := filepath.Join(dirs[1], share.At(share.Staging, names[0]))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		bears(homes[1], false)
	}
	if err := homes[0].Unmark(mark); err != nil {
		t.Fatal(err)
	}
	bears(homes[2], false)
}
