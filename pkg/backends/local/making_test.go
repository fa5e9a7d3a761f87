package local

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// largeSize is the size of the image that is copied.
const largeSize = 8 << 20

// hurried is how long a call waits for a copy that does not end.
const hurried = 10 * time.Millisecond

// slowPools is a backend whose copies stop at a gate, if there is one.
type slowPools struct {
	*fixture
	sources map[string]string // by pool: a large image, and a directory of many files
	gate    atomic.Pointer[gate]
}

// gate stops one copy at its beginning, until the gate is opened or the copy is given up.
type gate struct{ reached, opened chan struct{} }

func (s *slowPools) pass(ctx context.Context) {
	g := s.gate.Swap(nil)
	if g == nil {
		return
	}
	close(g.reached)
	select {
	case <-g.opened:
	case <-ctx.Done():
	}
}

// newSlowPools opens a backend whose copies share no blocks. It has a large image and a directory with many files.
func newSlowPools(t *testing.T) *slowPools {
	t.Helper()
	dir := testfs.New(t, "ext4", 256)
	f := newFixture(t, PoolConfig{Name: "image", Type: "image", Path: filepath.Join(dir, "i")},
		PoolConfig{Name: "directory", Type: "directory", Path: filepath.Join(dir, "d")})
	spec := specIn("image", "large")
	spec.Capacity.RequiredBytes = largeSize
	v, err := f.Create(t.Context(), spec)
	must(t, err)
	image, err := os.OpenFile(f.data(v.Handle), os.O_WRONLY, 0)
	must(t, err)
	_, err = io.CopyN(image, rand.Reader, largeSize)
	must(t, errors.Join(err, image.Close()))
	d := f.create("directory", "many")
	for i := range 200 {
		must(t, writeFile(filepath.Join(f.data(d.Handle), fmt.Sprint(i)), fmt.Sprint("file ", i)))
	}
	s := &slowPools{fixture: f, sources: map[string]string{"image": v.Handle, "directory": d.Handle}}
	f.copying = s.pass
	return s
}

// TestAPanicKeepsNothing: afterwards the next call creates the volume, and its source can be deleted.
func TestAPanicKeepsNothing(t *testing.T) {
	f := newFixture(t)
	source, now := f.create("image", "source"), f.now
	f.now = func() time.Time { panic("a mistake in the program") }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		_, _ = f.Clone(t.Context(), specIn("image", "clone"), source.Handle)
	}()
	f.now = now
	_, err := f.Clone(t.Context(), specIn("image", "clone"), source.Handle)
	must(t, err)
	must(t, f.Delete(t.Context(), source.Handle))
}

// sumOf returns a checksum of all data of a volume or snapshot.
func sumOf(t *testing.T, path string) string {
	t.Helper()
	sum := sha256.New()
	must(t, filepath.WalkDir(path, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintln(sum, entry.Name(), len(data))
		sum.Write(data)
		return err
	}))
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// TestCopiesOutliveTheirCalls makes each kind of copy with a call that ends before the copy, and a call that asks for
// its outcome.
func TestCopiesOutliveTheirCalls(t *testing.T) {
	f := newSlowPools(t)
	for _, pool := range []string{"image", "directory"} {
		source := f.sources[pool]
		want := sumOf(t, f.data(source))
		s := backends.SnapshotSpec{Name: pool, Volume: source}
		snapshot := handleOf(snapshotPrefix, s.Name)
		for _, copied := range []struct {
			what string
			make func(ctx context.Context) error
			data func() string
		}{
			{"Clone", func(ctx context.Context) error { return second(f.Clone(ctx, specIn(pool, "c"+pool), source)) },
				func() string { return f.data(handleOf(volumePrefix, "c"+pool)) }},
			{"CreateSnapshot", func(ctx context.Context) error { return second(f.CreateSnapshot(ctx, s)) },
				func() string { return f.snapshotData(snapshot) }},
			{"Restore", func(ctx context.Context) error { return second(f.Restore(ctx, specIn(pool, "r"+pool), snapshot)) },
				func() string { return f.data(handleOf(volumePrefix, "r"+pool)) }},
			{"CreateGroup", func(ctx context.Context) error {
				return second(f.CreateGroup(ctx, backends.GroupSpec{Name: "g", Volumes: []string{source}}))
			}, func() string { return f.snapshotData(memberHandle(handleOf(groupPrefix, "g"), 0)) }},
		} {
			if copied.what == "CreateGroup" && pool == "directory" {
				continue
			}
			close(f.begin(t, copied.what+" in pool "+pool, copied.make).opened)
			if err := copied.make(t.Context()); err != nil {
				t.Fatalf("%s in pool %s, called again: %v", copied.what, pool, err)
			}
			if sumOf(t, copied.data()) != want {
				t.Errorf("%s in pool %s does not hold what its source holds", copied.what, pool)
			}
		}
	}
	f.promised(5*largeSize + 3*4<<20)
}

// snapshotData returns the path of a snapshot's data.
func (f *fixture) snapshotData(handle string) string {
	f.Helper()
	s, err := f.stock.snapshots.get(handle)
	must(f, err)
	return s.data()
}

// begin makes a call that begins a copy, and ends the call while the copy is at the gate.
func (s *slowPools) begin(t *testing.T, what string, call func(ctx context.Context) error) *gate {
	t.Helper()
	g := &gate{make(chan struct{}), make(chan struct{})}
	s.gate.Store(g)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	select {
	case <-g.reached:
	case err := <-ended:
		t.Fatalf("%s: the call ended before the copy began: %v", what, err)
	case <-time.After(patience):
		t.Fatalf("%s: no copy begins after %v", what, patience)
	}
	cancel()
	hasKind(t, what+", by a call that ends before the copy", <-ended, backends.Busy, "call again")
	return g
}

// beginClone begins a clone of a large image.
func (s *slowPools) beginClone(t *testing.T) *gate {
	t.Helper()
	return s.begin(t, "Clone", func(ctx context.Context) error {
		return second(s.Clone(ctx, specIn("image", "clone"), s.sources["image"]))
	})
}

// TestSourcesAreHeldByWhatOutlivesItsCall uses and deletes the source of a clone that is created in the background.
func TestSourcesAreHeldByWhatOutlivesItsCall(t *testing.T) {
	f := newSlowPools(t)
	g := f.beginClone(t)
	// Stimulus: the copy does not end before the gate is opened.
	ctx, cancel := context.WithTimeout(t.Context(), hurried)
	defer cancel()
	hasKind(t, "Delete of the source", f.Delete(ctx, f.sources["image"]), backends.Busy)
	_, err := f.Source(ctx, backends.Attachment{Handle: f.sources["image"]})
	hasKind(t, "Source of the source", err, backends.Busy)
	close(g.opened)
	_, err = f.Clone(t.Context(), specIn("image", "clone"), f.sources["directory"])
	hasKind(t, "a call that asks for another clone of the name", err, backends.Exists)
	_, err = f.Clone(t.Context(), specIn("image", "clone"), f.sources["image"])
	hasKind(t, "a call after it has ended", err, backends.Exists)
	must(t, f.Delete(t.Context(), f.sources["image"]))
	must(t, f.Delete(t.Context(), handleOf(volumePrefix, "clone")))
}

// TestCloseEndsWhatOutlivesItsCall checks that nothing unfinished is left.
func TestCloseEndsWhatOutlivesItsCall(t *testing.T) {
	f := newSlowPools(t)
	f.beginClone(t)
	f.reopen()
	f.holdsOnly("volumes/"+f.sources["image"], "volumes/"+f.sources["directory"])
	f.promised(largeSize + 4<<20)
	if _, err := f.Clone(t.Context(), specIn("image", "clone"), f.sources["image"]); err != nil {
		t.Errorf("the clone afterwards: %v", err)
	}
}

// TestDeleteEndsWhatIsToBecomeTheVolume deletes by the handle, which follows from the name, before the volume exists.
func TestDeleteEndsWhatIsToBecomeTheVolume(t *testing.T) {
	f := newSlowPools(t)
	f.beginClone(t)
	hasKind(t, "Delete", f.Delete(t.Context(), handleOf(volumePrefix, "clone")), backends.NotFound)
	snapshot, group := handleOf(snapshotPrefix, "s"), handleOf(groupPrefix, "g")
	f.begin(t, "CreateSnapshot", func(ctx context.Context) error {
		return second(f.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: f.sources["image"]}))
	})
	hasKind(t, "DeleteSnapshot", f.DeleteSnapshot(t.Context(), snapshot), backends.NotFound)
	f.begin(t, "CreateGroup", func(ctx context.Context) error {
		return second(f.CreateGroup(ctx, backends.GroupSpec{Name: "g", Volumes: []string{f.sources["image"]}}))
	})
	hasKind(t, "DeleteGroup", f.DeleteGroup(t.Context(), group), backends.NotFound)
	f.holdsOnly("volumes/"+f.sources["image"], "volumes/"+f.sources["directory"])
	f.promised(largeSize + 4<<20)
	must(t, f.Delete(t.Context(), f.sources["image"]))
}

// TestTheNextCallHearsTheFailure has a clone that fails after its call has ended and is then created again.
func TestTheNextCallHearsTheFailure(t *testing.T) {
	f := newSlowPools(t)
	g := f.beginClone(t)
	must(t, os.Truncate(f.data(f.sources["image"]), largeSize/2))
	close(g.opened)
	_, err := f.Clone(t.Context(), specIn("image", "clone"), f.sources["image"])
	hasKind(t, "the next call", err, backends.Unavailable, fmt.Sprint(largeSize/2, " bytes of ", largeSize))
	must(t, os.Truncate(f.data(f.sources["image"]), largeSize))
	if _, err := f.Clone(t.Context(), specIn("image", "clone"), f.sources["image"]); err != nil {
		t.Errorf("the clone afterwards: %v", err)
	}
}
