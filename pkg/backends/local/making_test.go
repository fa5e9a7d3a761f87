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
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// largeSize is that of a volume whose copy takes longer than a hurried call.
const largeSize = 64 << 20

// hurried is how long a hurried call lasts: long enough to begin a copy, too short to end it.
const hurried = 10 * time.Millisecond

// newSlowPools opens a backend whose copies share no blocks, with a large image in it and a directory of many files.
func newSlowPools(t *testing.T) (f *fixture, sources map[string]string) {
	t.Helper()
	dir := testfs.New(t, "ext4", 768)
	f = newFixture(t, PoolConfig{Name: "image", Type: "image", Path: filepath.Join(dir, "i")},
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
	for i := range 2000 {
		must(t, writeFile(filepath.Join(f.data(d.Handle), fmt.Sprint(i)), fmt.Sprint("file ", i)))
	}
	return f, map[string]string{"image": v.Handle, "directory": d.Handle}
}

// inCalls makes a call again and again, each time with so little time, until it ends otherwise than for lack of it.
func inCalls(t *testing.T, call func(ctx context.Context) error) (calls int, err error) {
	t.Helper()
	for calls = 1; calls <= 1000; calls++ {
		ctx, cancel := context.WithTimeout(t.Context(), hurried)
		err = call(ctx)
		cancel()
		if !backends.Is(err, backends.Busy) && !backends.Is(err, backends.Unavailable) {
			return calls, err
		}
	}
	t.Fatalf("after %d calls it still says: %v", calls-1, err)
	return 0, nil
}

// sumOf is a sum of all that a volume's or snapshot's data holds.
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

// TestCopiesOutliveTheirCalls makes every sort of copy by calls that are each too short for it.
func TestCopiesOutliveTheirCalls(t *testing.T) {
	f, sources := newSlowPools(t)
	for _, pool := range []string{"image", "directory"} {
		source := sources[pool]
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
			calls, err := inCalls(t, copied.make)
			if err != nil {
				t.Fatalf("%s in pool %s, call %d: %v", copied.what, pool, calls, err)
			}
			if calls == 1 {
				t.Errorf("%s in pool %s did not outlive its call: the test shows nothing", copied.what, pool)
			}
			if sumOf(t, copied.data()) != want {
				t.Errorf("%s in pool %s does not hold what its source holds", copied.what, pool)
			}
		}
	}
	f.promised(5*largeSize + 3*4<<20)
}

// snapshotData is the path of a snapshot's data.
func (f *fixture) snapshotData(handle string) string {
	f.Helper()
	s, err := f.snapshots.get(handle)
	must(f, err)
	return s.data()
}

// begin makes a call that begins a copy, and ends the call as soon as the copy is under way.
func (f *fixture) begin(t *testing.T, running func(key string) bool, key string, call func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	for !running(key) {
		<-time.After(time.Millisecond)
	}
	cancel()
	hasKind(t, "a call that ends before the copy", <-ended, backends.Busy, "call again")
}

// beginClone begins a clone of a large image.
func (f *fixture) beginClone(t *testing.T, source string) {
	t.Helper()
	f.begin(t, f.making.volumes.Running, handleOf(volumePrefix, "clone"), func(ctx context.Context) error {
		return second(f.Clone(ctx, specIn("image", "clone"), source))
	})
}

// TestSourcesAreHeldByWhatOutlivesItsCall uses and deletes the source of a clone that is made in the background.
func TestSourcesAreHeldByWhatOutlivesItsCall(t *testing.T) {
	f, sources := newSlowPools(t)
	f.beginClone(t, sources["image"])
	ctx, cancel := context.WithTimeout(t.Context(), hurried)
	defer cancel()
	hasKind(t, "Delete of the source", f.Delete(ctx, sources["image"]), backends.Busy)
	_, err := f.Source(ctx, backends.Attachment{Handle: sources["image"]})
	hasKind(t, "Source of the source", err, backends.Busy)
	_, err = f.Clone(t.Context(), specIn("image", "clone"), sources["directory"])
	hasKind(t, "a call that asks for another clone of the name", err, backends.Exists)
	_, err = f.Clone(t.Context(), specIn("image", "clone"), sources["image"])
	hasKind(t, "a call after it has ended", err, backends.Exists)
	must(t, f.Delete(t.Context(), sources["image"]))
	must(t, f.Delete(t.Context(), handleOf(volumePrefix, "clone")))
}

// TestCloseEndsWhatOutlivesItsCall finds nothing half-made afterwards.
func TestCloseEndsWhatOutlivesItsCall(t *testing.T) {
	f, sources := newSlowPools(t)
	f.beginClone(t, sources["image"])
	f.reopen()
	f.holdsOnly("volumes/"+sources["image"], "volumes/"+sources["directory"])
	f.promised(largeSize + 4<<20)
	if _, err := f.Clone(t.Context(), specIn("image", "clone"), sources["image"]); err != nil {
		t.Errorf("the clone afterwards: %v", err)
	}
}

// TestDeleteEndsWhatIsToBecomeTheVolume deletes by the handle, which the name makes, before there is a volume.
func TestDeleteEndsWhatIsToBecomeTheVolume(t *testing.T) {
	f, sources := newSlowPools(t)
	f.beginClone(t, sources["image"])
	hasKind(t, "Delete", f.Delete(t.Context(), handleOf(volumePrefix, "clone")), backends.NotFound)
	snapshot, group := handleOf(snapshotPrefix, "s"), handleOf(groupPrefix, "g")
	f.begin(t, f.making.snapshots.Running, snapshot, func(ctx context.Context) error {
		return second(f.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: sources["image"]}))
	})
	hasKind(t, "DeleteSnapshot", f.DeleteSnapshot(t.Context(), snapshot), backends.NotFound)
	f.begin(t, f.making.groups.Running, group, func(ctx context.Context) error {
		return second(f.CreateGroup(ctx, backends.GroupSpec{Name: "g", Volumes: []string{sources["image"]}}))
	})
	hasKind(t, "DeleteGroup", f.DeleteGroup(t.Context(), group), backends.NotFound)
	f.holdsOnly("volumes/"+sources["image"], "volumes/"+sources["directory"])
	f.promised(largeSize + 4<<20)
	must(t, f.Delete(t.Context(), sources["image"]))
}

// TestTheNextCallHearsTheFailure has a clone fail after its call has ended; then it is made anew.
func TestTheNextCallHearsTheFailure(t *testing.T) {
	f, sources := newSlowPools(t)
	f.beginClone(t, sources["image"])
	must(t, os.Truncate(f.data(sources["image"]), largeSize/2))
	_, err := f.Clone(t.Context(), specIn("image", "clone"), sources["image"])
	hasKind(t, "the next call", err, backends.Unavailable, fmt.Sprint(largeSize/2, " bytes of ", largeSize))
	must(t, os.Truncate(f.data(sources["image"]), largeSize))
	if _, err := f.Clone(t.Context(), specIn("image", "clone"), sources["image"]); err != nil {
		t.Errorf("the clone afterwards: %v", err)
	}
}
