package device

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/stall"
)

// sparse creates a sparse file of 1 MiB at a path.
func sparse(t *testing.T, elements ...string) string {
	t.Helper()
	path := filepath.Join(elements...)
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, mib)); err != nil {
		t.Fatal(err)
	}
	return path
}

// stranger is an image on a server that does not answer.
type stranger struct {
	*testing.T
	server *stall.Server
	path   string
}

func newStranger(t *testing.T) *stranger {
	t.Helper()
	needRoot(t)
	server := stall.Serve(t)
	return &stranger{t, server, sparse(t, server.Dir, "slow")}
}

// take attaches the stranger's image to the loop device of a number, stops its server, and reports whether it did:
// another process on the machine may have been quicker.
func (s *stranger) take(number uint32) bool {
	s.Helper()
	file, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if err != nil {
		s.Fatal(err)
	}
	node, err := attachTo(int(number), file, Options{})
	_ = file.Close() // the loop device has its own reference
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENXIO) {
		return false
	}
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = node.Close() })     // which clears it
	s.Cleanup(func() { s.server.Continue(s) }) // or it could not be closed
	s.server.Stop(s)
	return true
}

// cleared returns an image whose loop device was cleared. The number of that device now belongs to the stranger.
func (s *stranger) cleared() (path string, was attachment) {
	s.Helper()
	path = sparse(s.T, s.TempDir(), "quick")
	for end := time.Now().Add(enough); time.Now().Before(end); {
		d := open(s.T, path, mib, Options{})
		was, _, err := loopDevice{path: d.Path}.shown()
		if err := errors.Join(err, d.Close()); err != nil {
			s.Fatal(err)
		}
		wantFreed(s.T, path)
		if s.take(d.Minor) {
			return path, was
		}
	}
	s.Fatalf("the number of a device that is free is somebody else's each time for %s", enough)
	return "", attachment{}
}

// The former number of a loop device may now be that of a device whose server does not answer.
func TestDetachFromAsksNoStranger(t *testing.T) {
	s := newStranger(t)
	path, was := s.cleared()
	var stat unix.Stat_t
	if err := unix.Stat(was.Path, &stat); err != nil {
		t.Fatal(err)
	}
	major, minor := unix.Major(stat.Rdev), unix.Minor(stat.Rdev)
	users := len(descriptors(t, was.Path))
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	for _, sequence := range []uint64{was.sequence, 0} {
		if err := DetachFrom(ctx, path, major, minor, sequence, enough); err != nil {
			t.Errorf("with the sequence number %d: %v", sequence, err)
		}
	}
	if err := DetachDeleted(ctx, "slow", major, minor, enough); err != nil {
		t.Errorf("what was deleted: %v", err)
	}
	if now := len(descriptors(t, was.Path)); now != users {
		t.Errorf("%s is open %d times, was %d times: it was asked", was.Path, now, users)
	}
}

// A device that a search found may be another image's before it is opened.
func TestDetachOpensNoStranger(t *testing.T) {
	s := newStranger(t)
	_, was := s.cleared()
	if holds, err := (loopDevice{was.Path, was.File}).unchanged(); !holds || err == nil {
		t.Errorf("it shows %q still: %t (%v), want an error", was.File, holds, err)
	}
}

// descriptors returns this process's descriptors of a device.
func descriptors(t *testing.T, node string) (open []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && to == node {
			open = append(open, entry.Name())
		}
	}
	return open
}

// waiting is a detach that checks again when it is told to.
type waiting struct {
	asked chan struct{} // gets an element with each question that the device has answered
	tick  chan time.Time
	freed chan bool // how it ended
}

func freeing(t *testing.T, node string) *waiting {
	t.Helper()
	w := &waiting{make(chan struct{}, 1), make(chan time.Time), make(chan bool, 1)}
	judge := func(device *os.File, _ *unix.LoopInfo64) (bool, error) {
		select {
		case w.asked <- struct{}{}:
		default:
		}
		_, err := Sequence(device)
		return err == nil, err
	}
	ended := make(chan struct{})
	t.Cleanup(func() { <-ended }) // once the stranger's server continues, at the latest
	go func() {
		defer close(ended)
		freed, err := loopDevice{path: node}.free(t.Context(), judge, w.tick)
		if err != nil {
			t.Error(err)
		}
		w.freed <- freed
	}()
	return w
}

// A number is reused between two checks of a detach that waits for a device to be free.
func TestDetachWaitsForNoStranger(t *testing.T) {
	for name, use := range map[string]int{"while it is open": 0, "while it is claimed": unix.O_EXCL} {
		t.Run(name, func(t *testing.T) {
			s := newStranger(t)
			for end := time.Now().Add(enough); !s.taken(use); {
				if time.Now().After(end) {
					t.Fatalf("the number of a device that is free is somebody else's each time for %s", enough)
				}
			}
		})
	}
}

// taken has a detach wait for the user of a device, and checks how it continues once the number is the stranger's. It
// reports whether the stranger got the number.
func (s *stranger) taken(use int) bool {
	s.Helper()
	d := open(s.T, sparse(s.T, s.TempDir(), "quick"), mib, Options{})
	user, err := unix.Open(d.Path, use|unix.O_CLOEXEC, 0)
	if err := errors.Join(err, d.Close()); err != nil {
		s.Fatal(err)
	}
	w := freeing(s.T, d.Path)
	select {
	case <-w.asked:
	case <-w.freed:
		s.Fatal("it ended while somebody had the device open")
	}
	for len(descriptors(s.T, d.Path)) > 1 { // until it waits
		<-time.After(time.Millisecond)
	}
	if err := unix.Close(user); err != nil {
		s.Fatal(err)
	}
	took := s.take(d.Minor)
	for {
		select {
		case w.tick <- time.Now():
		case freed := <-w.freed:
			if !freed {
				s.Error("it says that the device was not its image's")
			}
			return took
		case <-time.After(enough):
			s.Fatal("it waits for the server of another image")
		}
	}
}

// Without sequence numbers in the kernel, a changed name proves nothing: the image may have been renamed.
func TestEndedWithoutSequence(t *testing.T) {
	path := image(t, mib)
	d := open(t, path, mib, Options{})
	loop := loopDevice{path: d.Path}
	was, holds, err := loop.shown()
	if err != nil || !holds || was.File != path {
		t.Fatalf("it shows %+v (%t, %v), want %q", was, holds, err, path)
	}
	image, err := subjectOf(path)
	if err := errors.Join(err, os.Rename(path, path+".moved")); err != nil {
		t.Fatal(err)
	}
	defer image.close()
	was.sequence = 0
	if ended, err := loop.ended(was, image.held); ended || err != nil {
		t.Errorf("the image was renamed, and its device is free (%v)", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	wantFreed(t, path+".moved")
	if ended, err := loop.ended(was, image.held); !ended || err != nil {
		t.Errorf("the device is free, and is not (%v)", err)
	}
}
