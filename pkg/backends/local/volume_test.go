package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/testfs"
)

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }

func TestDirectoryVolume(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	f := newFixture(t)
	v := f.create("directory", "one")
	info, err := os.Stat(f.use(v.Handle))
	must(t, err)
	if info.Mode() != fs.ModeDir|0o755 || v.CapacityBytes != 4<<20 {
		t.Errorf("the volume is %v with a capacity of %d, want mode 0755 and %d", info.Mode(), v.CapacityBytes, 4<<20)
	}
	spec := specIn("directory", "odd size")
	spec.Capacity = backends.CapacityRange{RequiredBytes: 12345, LimitBytes: 12345}
	if v, err := f.Create(t.Context(), spec); err != nil || v.CapacityBytes != 12345 {
		t.Errorf("an odd size: got %+v, %v", v, err)
	}
}

func TestImageVolume(t *testing.T) {
	f := newFixture(t)
	for _, test := range []struct {
		allocation string
		least      int64
		most       int64
	}{{sparse, 0, 64 << 10}, {full, 4 << 20, 5 << 20}} {
		spec := specIn("image", test.allocation)
		spec.Parameters = &Parameters{Allocation: test.allocation, ReadAheadKiB: pointer(64)}
		spec.Capacity.RequiredBytes = 4<<20 - 5
		v, err := f.Create(t.Context(), spec)
		must(t, err)
		source, err := f.Source(t.Context(), backends.Attachment{Handle: v.Handle, Type: backends.Block})
		must(t, err)
		want := backends.Device{Path: f.data(v.Handle), Image: true, Identity: backends.Identity{SizeBytes: 4 << 20},
			ReadAheadKiB: 64}
		if source != want {
			t.Errorf("the source is %+v, want %+v", source, want)
		}
		var stat unix.Stat_t
		must(t, unix.Stat(want.Path, &stat))
		if used := stat.Blocks * 512; stat.Size != 4<<20 || used < test.least || used > test.most {
			t.Errorf("a %s image has %d bytes and takes %d, want %d to %d", test.allocation, stat.Size, used, test.least,
				test.most)
		}
	}
}

func TestEverythingIsOnThisNode(t *testing.T) {
	f := newFixture(t)
	here, elsewhere := backends.Topology{testDriver + "/node": "node-1"}, backends.Topology{testDriver + "/node": "node-2"}
	spec := specIn("image", "here")
	spec.Topology = backends.TopologyRequirement{Requisite: []backends.Topology{elsewhere, here}}
	v, err := f.Create(t.Context(), spec)
	must(t, err)
	if len(v.Topology) != 1 || v.Topology[0][testDriver+"/node"] != "node-1" {
		t.Errorf("the volume is at %v, want %v", v.Topology, here)
	}
	spec = specIn("image", "elsewhere")
	spec.Topology.Requisite = []backends.Topology{elsewhere}
	_, err = f.Create(t.Context(), spec)
	hasKind(t, "a volume elsewhere", err, backends.Exhausted, "node-1", "node-2")
	_, err = f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle, Topology: spec.Topology})
	hasKind(t, "a snapshot elsewhere", err, backends.Exhausted, "node-1", "node-2")
	f.holdsOnly("volumes/" + v.Handle)
	v.Topology[0][testDriver+"/node"] = "changed by the caller"
	if place, err := f.Topology(t.Context()); err != nil || place[testDriver+"/node"] != "node-1" {
		t.Errorf("the node is at %v, %v; want %v", place, err, here)
	}
}

func TestRetain(t *testing.T) {
	f := newFixture(t)
	spec := specIn("directory", "name\nwith / odd things")
	spec.Parameters = &Parameters{Pool: "directory", OnDelete: retainData}
	v, err := f.Create(t.Context(), spec)
	must(t, err)
	must(t, writeFile(filepath.Join(f.data(v.Handle), "file"), "kept"))
	must(t, f.Delete(t.Context(), v.Handle))
	_, err = f.Get(t.Context(), v.Handle)
	hasKind(t, "Get of a retained volume", err, backends.NotFound)
	f.promised(0)
	if again, err := f.Create(t.Context(), spec); err != nil || again.Handle != v.Handle {
		t.Errorf("the name cannot be used again: %v", err)
	}
	must(t, f.Delete(t.Context(), v.Handle))
	f.reopen()
	retained, err := filepath.Glob(f.in("directory").folder(retainedFolder) + "/*-" + v.Handle)
	must(t, err)
	if len(retained) != 2 {
		t.Fatalf("retained are %q, want two", retained)
	}
	if data, err := os.ReadFile(filepath.Join(retained[0], "data", "file")); err != nil || string(data) != "kept" {
		t.Errorf("the retained file has %q, %v", data, err)
	}
	if record, err := os.ReadFile(filepath.Join(retained[0], recordFile)); err != nil ||
		!strings.Contains(string(record), `name\nwith / odd things`) {
		t.Errorf("the record of a retained volume is %q, %v", record, err)
	}
}

func TestModify(t *testing.T) {
	f := newFixture(t)
	spec := specIn("image", "one")
	spec.Parameters = &Parameters{OnDelete: retainData, ReadAheadKiB: pointer(1)}
	spec.Mutable = &Mutable{ReadAheadKiB: pointer(2)}
	v, err := f.Create(t.Context(), spec)
	must(t, err)
	if r := f.volumesRecord(v.Handle); r.ReadAheadKiB != 2 || r.OnDelete != retainData {
		t.Errorf("the record is %+v, want what is mutable to prevail", r)
	}
	f.use(v.Handle)
	must(t, f.Modify(t.Context(), v.Handle, &Mutable{ReadAheadKiB: pointer(0), OnDelete: pointer(deleteData)}))
	must(t, f.Modify(t.Context(), v.Handle, &Mutable{}))
	f.reopen()
	if r := f.volumesRecord(v.Handle); r.ReadAheadKiB != 0 || r.OnDelete != deleteData {
		t.Errorf("the record is %+v after Modify", r)
	}
	d := f.create("directory", "two")
	hasKind(t, "read-ahead of a directory", f.Modify(t.Context(), d.Handle, &Mutable{ReadAheadKiB: pointer(1)}),
		backends.Invalid, "directory")
	hasKind(t, "a value that does not exist", f.Modify(t.Context(), d.Handle, &Mutable{OnDelete: pointer("shred")}),
		backends.Invalid, "shred")
}

func TestUseSurvivesTheProcessButNotTheBoot(t *testing.T) {
	f := newFixture(t)
	for _, pool := range []string{"directory", "image"} {
		v := f.create(pool, "in "+pool)
		f.use(v.Handle)
		f.use(v.Handle)
		hasKind(t, "Delete", f.Delete(t.Context(), v.Handle), backends.InUse, "node-1")
		f.reopen()
		hasKind(t, "Delete after a restart", f.Delete(t.Context(), v.Handle), backends.InUse, "node-1")
		must(t, f.Release(t.Context(), v.Handle))
		must(t, f.Delete(t.Context(), v.Handle))
	}
	v := f.create("image", "over a boot")
	dir := f.dir(v.Handle)
	f.use(v.Handle)
	f.shut()
	for _, n := range []note{inUseNote, frozenNote} {
		must(t, n.clear(dir))
		must(t, n.set(dir, "an earlier boot"))
	}
	f.open()
	for _, n := range []note{inUseNote, frozenNote} {
		if _, err := os.Lstat(filepath.Join(dir, string(n))); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the note %q of an earlier boot is still there: %v", n, err)
		}
	}
	must(t, f.Delete(t.Context(), v.Handle))
	f.holdsOnly()
}

func TestSourceOfLostData(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	must(t, os.Remove(f.data(v.Handle)))
	_, err := f.Source(t.Context(), backends.Attachment{Handle: v.Handle})
	hasKind(t, "Source", err, backends.Unavailable)
	must(t, f.Delete(t.Context(), v.Handle)) // It is not in use.
	d := f.create("directory", "two")
	_, err = f.Source(t.Context(), backends.Attachment{Handle: d.Handle, Type: backends.Block})
	hasKind(t, "Source of a directory as a device", err, backends.Unsupported)
}

func TestWhatIsRemovedByHandCanBeDeleted(t *testing.T) {
	f := newFixture(t)
	kept := specIn("image", "retained")
	kept.Parameters = &Parameters{OnDelete: retainData}
	one, two := f.create("image", "one"), f.create("directory", "two")
	three, err := f.Create(t.Context(), kept)
	must(t, err)
	for _, v := range []*backends.Volume{one, two, three} {
		must(t, os.RemoveAll(f.dir(v.Handle)))
		must(t, f.Delete(t.Context(), v.Handle))
	}
	f.promised(0)
	f.holdsOnly()
}

func TestExpand(t *testing.T) {
	f := newFixture(t)
	for _, test := range []struct {
		parameters *Parameters
		node       bool
	}{{&Parameters{Pool: "directory"}, false}, {&Parameters{}, true}, {&Parameters{Allocation: full}, true}} {
		spec := specIn("", "name of "+test.parameters.Pool+test.parameters.Allocation)
		spec.Parameters = test.parameters
		v, err := f.Create(t.Context(), spec)
		must(t, err)
		path := f.use(v.Handle)
		e, err := f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 8 << 20})
		if err != nil || e.CapacityBytes != 8<<20 || e.NodeExpansion != test.node {
			t.Errorf("the expansion is %+v, %v", e, err)
		}
		if info, err := os.Stat(path); err != nil || test.node && info.Size() != 8<<20 {
			t.Errorf("the image has %d bytes, %v", info.Size(), err)
		}
		e, err = f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 1})
		if err != nil || e.CapacityBytes != 8<<20 || e.NodeExpansion != test.node {
			t.Errorf("an expansion to less is %+v, %v", e, err)
		}
		_, err = f.Expand(t.Context(), v.Handle, backends.CapacityRange{LimitBytes: 4 << 20})
		hasKind(t, "an expansion that would shrink", err, backends.OutOfRange)
		_, err = f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 1 << 60})
		hasKind(t, "an expansion to too much", err, backends.Exhausted, "bytes")
	}
	f.promised(3 * 8 << 20)
	f.reopen()
	f.promised(3 * 8 << 20)
}

func TestExpandThatFailsLeavesTheVolumeAsItWas(t *testing.T) {
	dir := testfs.New(t, "ext4", 64)
	f := newFixture(t, PoolConfig{Name: "small", Type: "image", Path: filepath.Join(dir, "pool"),
		Overcommit: pointer(1e6)})
	spec := specIn("small", "one")
	spec.Parameters = &Parameters{Pool: "small", Allocation: full}
	v, err := f.Create(t.Context(), spec)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, grow := range map[string]func() error{
		"no room": func() error {
			_, err := f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 1 << 30})
			hasKind(t, "Expand", err, backends.Exhausted)
			return err
		},
		"context": func() error {
			volume, err := f.stock.volumes.get(v.Handle)
			must(t, err)
			_, err = volume.expand(ctx, backends.CapacityRange{RequiredBytes: 8 << 20})
			return err
		},
	} {
		if err := grow(); err == nil {
			t.Errorf("%s: the expansion succeeded", what)
		}
		r := f.volumesRecord(v.Handle)
		if info, err := os.Stat(f.data(v.Handle)); err != nil || info.Size() != 4<<20 || r.SizeBytes != 4<<20 ||
			r.ExpandingFromBytes != 0 {
			t.Errorf("%s: the image has %d bytes, %v, and the record is %+v", what, info.Size(), err, r)
		}
		f.promised(4 << 20)
	}
	e, err := f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 8 << 20})
	if err != nil || e.CapacityBytes != 8<<20 {
		t.Errorf("the next expansion: %+v, %v", e, err)
	}
}

func TestSecondCreateOfANameThatIsBeingMade(t *testing.T) {
	f := newFixture(t)
	must(t, f.stock.volumes.reserve(handleOf(volumePrefix, "one")))
	_, err := f.Create(t.Context(), specIn("image", "one"))
	hasKind(t, "Create", err, backends.Busy)
	_, err = f.Find(t.Context(), backends.Spec{Name: "one"})
	hasKind(t, "Find", err, backends.NotFound)
	f.stock.volumes.abandon(handleOf(volumePrefix, "one"))
	f.create("image", "one")
}

func TestConcurrentCreatesOfOneName(t *testing.T) {
	f := newFixture(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 16 {
		wg.Go(func() {
			_, err := f.Create(t.Context(), specIn("directory", "one"))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made++
			} else if !backends.Is(err, backends.Exists) && !backends.Is(err, backends.Busy) {
				t.Errorf("Create: %v", err)
			}
		})
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("%d of 16 made the volume, want one", made)
	}
	f.holdsOnly("volumes/" + handleOf(volumePrefix, "one"))
}

// A caller that needs the volume alone waits for sharers, too.
func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for _, pool := range []string{"image", "directory"} {
			v := f.create(pool, "in "+pool)
			held, err := f.stock.volumes.get(v.Handle)
			must(t, err)
			for what, w := range f.waiters(v.Handle, pool) {
				hold := held.own
				if w.owns {
					hold = held.share
				}
				release, err := hold(t.Context())
				must(t, err)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second) // It takes no real time.
				hasKind(t, what, w.call(ctx), backends.Busy)
				if ctx.Err() == nil {
					t.Errorf("%s of the %s did not wait", what, pool)
				}
				cancel()
				release()
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			hasKind(t, "Clone by a call that has ended", second(f.Clone(ended, specIn(pool, "clone"), v.Handle)),
				backends.Unavailable)
		}
	})
}

// waiter is a call that waits for the holders of a volume.
type waiter struct {
	owns bool // whether it needs the volume alone
	call func(context.Context) error
}

func (f *fixture) waiters(handle, pool string) map[string]waiter {
	return map[string]waiter{
		"Source": {true, func(ctx context.Context) error {
			return second(f.Source(ctx, backends.Attachment{Handle: handle}))
		}},
		"Expand": {true, func(ctx context.Context) error {
			return second(f.Expand(ctx, handle, backends.CapacityRange{RequiredBytes: 8 << 20}))
		}},
		"Clone": {false, func(ctx context.Context) error {
			return second(f.Clone(ctx, specIn(pool, "clone"), handle))
		}},
		"Delete":  {true, func(ctx context.Context) error { return f.Delete(ctx, handle) }},
		"Release": {pool == "image", func(ctx context.Context) error { return f.Release(ctx, handle) }},
		"Modify":  {true, func(ctx context.Context) error { return f.Modify(ctx, handle, &Mutable{}) }},
	}
}

func TestWhoWaitedForADeletedVolume(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	held, err := f.stock.volumes.get(v.Handle)
	must(t, err)
	held.gone.Store(true)
	_, err = f.Source(t.Context(), backends.Attachment{Handle: v.Handle})
	hasKind(t, "Source", err, backends.NotFound)
	hasKind(t, "Delete", f.Delete(t.Context(), v.Handle), backends.NotFound)
	must(t, f.Release(t.Context(), v.Handle))
	held.gone.Store(false)
}
