package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local/freeze"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// newPoolOn opens a backend with two pools of type image on a filesystem of the given type.
func newPoolOn(t *testing.T, fsType string) *fixture {
	t.Helper()
	dir := testfs.New(t, fsType, 1024)
	f := newFixture(t,
		PoolConfig{Name: "image", Type: "image", Path: filepath.Join(dir, "one"), Capacity: "100Gi"},
		PoolConfig{Name: "other", Type: "image", Path: filepath.Join(dir, "two"), Capacity: "100Gi"})
	if want := fsType != "ext4"; f.in("image").reflink.Load() != want {
		t.Fatalf("a pool on %s has reflinks: %t, want %t", fsType, f.in("image").reflink.Load(), want)
	}
	return f
}

// mountedVolume creates a volume with a mounted filesystem, as on a node.
func (f *fixture) mountedVolume(t *testing.T, name string) (v *backends.Volume, dir string) {
	t.Helper()
	spec := specIn("image", name)
	spec.Capacity.RequiredBytes = 32 << 20
	v, err := f.Create(t.Context(), spec)
	must(t, err)
	path := f.use(v.Handle)
	testfs.Format(t, "ext4", path)
	return v, testfs.Mount(t, testfs.Attach(t, path))
}

// readFrom mounts a volume and reads a file from it.
func (f *fixture) readFrom(t *testing.T, handle, name string) string {
	t.Helper()
	dir := t.TempDir()
	device := testfs.Attach(t, f.data(handle))
	testfs.Run(t, "mount", "-o", "ro", device, dir)
	defer func() { must(t, unix.Unmount(dir, 0)) }()
	data, err := os.ReadFile(filepath.Join(dir, name))
	must(t, err)
	return string(data)
}

func isFrozen(t *testing.T, dir string) bool {
	t.Helper()
	file, err := os.Open(dir)
	must(t, err)
	defer file.Close()
	const fiFreeze, fiThaw = 0xc0045877, 0xc0045878
	err = unix.IoctlSetInt(int(file.Fd()), fiFreeze, 0)
	if errors.Is(err, unix.EBUSY) {
		return true
	}
	must(t, err)
	must(t, unix.IoctlSetInt(int(file.Fd()), fiThaw, 0))
	return false
}

func TestSnapshotsOfMountedVolumes(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			f := newPoolOn(t, fsType)
			v, dir := f.mountedVolume(t, "source")
			must(t, writeFile(filepath.Join(dir, "file"), "first")) // Nothing has synced it.
			s := f.snapshot("snapshot", v.Handle)
			must(t, writeFile(filepath.Join(dir, "file"), "second"))
			clone, err := f.Clone(t.Context(), specIn("image", "clone"), v.Handle)
			must(t, err)
			elsewhere, err := f.Clone(t.Context(), specIn("other", "clone in another pool"), v.Handle)
			must(t, err)
			must(t, writeFile(filepath.Join(dir, "file"), "third"))
			restored, err := f.Restore(t.Context(), specIn("image", "restored"), s.Handle)
			must(t, err)
			for handle, want := range map[string]string{restored.Handle: "first", clone.Handle: "second",
				elsewhere.Handle: "second"} {
				if have := f.readFrom(t, handle, "file"); have != want {
					t.Errorf("volume %s has %q, want %q", handle, have, want)
				}
			}
			if isFrozen(t, dir) {
				t.Error("the filesystem is still frozen")
			}
			if held, err := frozenNote.holds(f.dir(v.Handle), f.boot); err != nil || held {
				t.Errorf("the note of freezing is still there: %t, %v", held, err)
			}
			if restored.CapacityBytes != 32<<20 || clone.CapacityBytes != 32<<20 {
				t.Errorf("the copies have %d and %d bytes, want the source's", restored.CapacityBytes, clone.CapacityBytes)
			}
			must(t, f.Release(t.Context(), v.Handle))
		})
	}
}

func TestRawVolumesInUse(t *testing.T) {
	for fsType, reflink := range map[string]bool{"ext4": false, "xfs": true} {
		t.Run(fsType, func(t *testing.T) {
			f := newPoolOn(t, fsType)
			var handles, devices []string
			for _, name := range []string{"one", "two", "idle"} {
				v := f.create("image", name)
				handles = append(handles, v.Handle)
				if name == "idle" {
					continue
				}
				device := testfs.Attach(t, f.use(v.Handle))
				must(t, os.WriteFile(device, []byte("written to the device of "+name), 0o600)) // Nothing has synced it.
				devices = append(devices, device)
			}
			s, err := f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: handles[0]})
			if !reflink {
				hasKind(t, "CreateSnapshot", err, backends.InUse, "xfs", handles[0])
				_, err = f.Clone(t.Context(), specIn("image", "c"), handles[0])
				hasKind(t, "Clone", err, backends.InUse)
				_, err = f.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: handles})
				hasKind(t, "CreateGroup", err, backends.InUse)
				return
			}
			must(t, err)
			restored, err := f.Restore(t.Context(), specIn("image", "restored"), s.Handle)
			must(t, err)
			data, err := os.ReadFile(f.data(restored.Handle))
			must(t, err)
			if !bytes.HasPrefix(data, []byte("written to the device of one")) {
				t.Errorf("the snapshot begins with %q", data[:64])
			}
			_, err = f.Clone(t.Context(), specIn("other", "in another pool"), handles[0])
			hasKind(t, "Clone into another pool, which is a copy", err, backends.InUse)
			_, err = f.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: handles})
			hasKind(t, "CreateGroup of two raw volumes in use", err, backends.InUse, "one by one")
			must(t, os.WriteFile(devices[0], []byte("written to the device before the group"), 0o600))
			g, err := f.CreateGroup(t.Context(),
				backends.GroupSpec{Name: "g", Volumes: []string{handles[2], handles[0]}})
			must(t, err)
			restored, err = f.Restore(t.Context(), specIn("image", "of the group"), g.Snapshots[1].Handle)
			must(t, err)
			data, err = os.ReadFile(f.data(restored.Handle))
			must(t, err)
			if !bytes.HasPrefix(data, []byte("written to the device before the group")) {
				t.Errorf("the group's snapshot begins with %q", data[:64])
			}
		})
	}
}

// A lost pool does not affect copies of volumes in other pools.
func TestSnapshotBesideALostPool(t *testing.T) {
	f := newPoolOn(t, "ext4")
	v, dir := f.mountedVolume(t, "source")
	must(t, writeFile(filepath.Join(dir, "beside"), "text"))
	p := f.in("other")
	must(t, os.Rename(p.path, p.path+".lost"))
	s := f.snapshot("s", v.Handle)
	must(t, os.Rename(p.path+".lost", p.path))
	restored, err := f.Restore(t.Context(), specIn("image", "restored"), s.Handle)
	must(t, err)
	if have := f.readFrom(t, restored.Handle, "beside"); have != "text" {
		t.Errorf("the snapshot has %q", have)
	}
}

// leaveFrozen freezes a filesystem like a process that is then killed. The cleanup thaws it in any case.
func leaveFrozen(t *testing.T, dir string) {
	t.Helper()
	testfs.Run(t, "fsfreeze", "-f", dir)
	frozen, err := os.Open(dir)
	must(t, err)
	t.Cleanup(func() {
		_ = unix.IoctlSetInt(int(frozen.Fd()), 0xc0045878, 0) // FITHAW.
		must(t, frozen.Close())
	})
}

// A filesystem that was left frozen and cannot be thawed at the start is thawed once that is possible.
func TestThawedLater(t *testing.T) {
	f := newFixture(t)
	v, dir := f.mountedVolume(t, "source")
	must(t, frozenNote.set(f.dir(v.Handle), f.boot))
	f.shut()
	leaveFrozen(t, dir)
	must(t, unix.Mount("over", dir, "tmpfs", 0, "")) // No path leads to it now.
	f.open()
	f.mend()
	must(t, unix.Unmount(dir, 0))
	f.mend()
	if isFrozen(t, dir) {
		t.Error("it is still frozen")
	}
	if held, err := frozenNote.holds(f.dir(v.Handle), f.boot); err != nil || held {
		t.Errorf("the note is still there: %t, %v", held, err)
	}
}

// A filesystem that was left frozen is thawed even if its volume's record cannot be read.
func TestThawedWithoutItsRecord(t *testing.T) {
	f := newFixture(t)
	v, mount := f.mountedVolume(t, "source")
	dir := f.dir(v.Handle)
	must(t, frozenNote.set(dir, f.boot))
	f.shut()
	record := filepath.Join(dir, recordFile)
	must(t, os.Rename(record, record+".away"))
	leaveFrozen(t, mount)
	f.open()
	f.isUnusable(v.Handle)
	f.mend()
	if isFrozen(t, mount) {
		t.Error("it is still frozen")
	}
	if held, err := frozenNote.holds(dir, f.boot); err != nil || held {
		t.Errorf("the note is still there: %t, %v", held, err)
	}
	f.isUnusable(v.Handle)
	must(t, os.Rename(record+".away", record))
	f.mend()
	f.use(v.Handle)
}

func (f *fixture) isUnusable(handle string) {
	f.Helper()
	hasKind(f, "Get", second(f.Get(f.Context(), handle)), backends.Unusable)
}

// A filesystem that cannot be thawed now keeps its note when another snapshot is requested, and is thawed later.
func TestSnapshotOfWhatIsFrozenStill(t *testing.T) {
	f := newPoolOn(t, "ext4")
	v, dir := f.mountedVolume(t, "source")
	must(t, frozenNote.set(f.dir(v.Handle), f.boot))
	f.shut()
	leaveFrozen(t, dir)
	must(t, unix.Mount("over", dir, "tmpfs", 0, "")) // No path leads to it now.
	f.open()
	take := func() error {
		return second(f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle}))
	}
	hasKind(t, "CreateSnapshot", take(), backends.InUse, v.Handle, "frozen still", "tried again")
	must(t, unix.Unmount(dir, 0))
	f.mend()
	if isFrozen(t, dir) {
		t.Error("it is still frozen")
	}
	must(t, take())
}

// If the notes for a freeze cannot all be written, the notes of other volumes stay.
func TestNotesOfFreezingThatFail(t *testing.T) {
	f := newFixture(t)
	var volumes []*volume
	for _, name := range []string{"one", "two", "three"} {
		v, err := f.stock.volumes.get(f.create("image", name).Handle)
		must(t, err)
		volumes = append(volumes, v)
	}
	must(t, frozenNote.set(volumes[2].dir, f.boot))
	volumes[1].dir = filepath.Join(volumes[1].dir, "missing")
	if err := f.noteFrozen(volumes); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want %v", err, fs.ErrNotExist)
	}
	for i, want := range map[int]bool{0: false, 2: true} {
		if held, err := frozenNote.holds(volumes[i].dir, f.boot); err != nil || held != want {
			t.Errorf("volume %d has a note: %t, %v; want %t", i, held, err, want)
		}
	}
}

func TestVolumesThatAreAboutToBeAttached(t *testing.T) {
	f := newPoolOn(t, "ext4")
	v := f.create("image", "one")
	f.use(v.Handle)
	_, err := f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	hasKind(t, "CreateSnapshot", err, backends.InUse)
	must(t, f.Release(t.Context(), v.Handle))
	f.snapshot("s", v.Handle)
}

// TestGroupsAreOfOneInstant takes groups of two mounted volumes while a writer writes each number first to the one and
// then to the other.
func TestGroupsAreOfOneInstant(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs"} {
		t.Run(fsType, func(t *testing.T) {
			f := newPoolOn(t, fsType)
			first, firstDir := f.mountedVolume(t, "first")
			second, secondDir := f.mountedVolume(t, "second")
			for _, dir := range []string{firstDir, secondDir} { // The first group may be taken before the writer runs.
				must(t, overwrite(filepath.Join(dir, "file"), 'a'))
			}
			done, ended := make(chan struct{}), make(chan struct{})
			t.Cleanup(func() { // Before the filesystems are unmounted.
				close(done)
				<-ended
			})
			go func() {
				defer close(ended)
				for n := byte('a'); ; n = 'a' + (n-'a'+1)%26 {
					for _, dir := range []string{firstDir, secondDir} {
						if err := overwrite(filepath.Join(dir, "file"), n); err != nil {
							t.Errorf("the writer: %v", err)
							return
						}
					}
					select {
					case <-done:
						return
					default:
					}
				}
			}()
			for _, name := range []string{"g1", "g2", "g3"} {
				g, err := f.CreateGroup(t.Context(), backends.GroupSpec{Name: name, Volumes: []string{second.Handle, first.Handle}})
				must(t, err)
				var have [2]byte
				for i, s := range g.Snapshots {
					v, err := f.Restore(t.Context(), specIn("image", name+s.Handle), s.Handle)
					must(t, err)
					have[i] = f.readFrom(t, v.Handle, "file")[0]
				}
				if behind := (have[1] + 26 - have[0]) % 26; behind > 1 {
					t.Errorf("group %s: the second has %q and the first %q", name, have[0], have[1])
				}
			}
		})
	}
}

// overwrite writes one byte and makes it durable, so that the order of writes is visible.
func overwrite(path string, text byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteAt([]byte{text}, 0)
	return errors.Join(err, file.Sync(), file.Close())
}

// TestSnapshotsOfOneMountedVolumeAtOnce takes two snapshots. Without waiting, one would find the filesystem frozen by
// the other.
func TestSnapshotsOfOneMountedVolumeAtOnce(t *testing.T) {
	f := newPoolOn(t, "ext4")
	v, dir := f.mountedVolume(t, "source")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := f.CreateSnapshot(t.Context(),
				backends.SnapshotSpec{Name: fmt.Sprint(i), Volume: v.Handle}); err != nil {
				t.Errorf("CreateSnapshot %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if isFrozen(t, dir) {
		t.Error("the filesystem is still frozen")
	}
}

// TestNobodyBeginsToUseWhatIsBeingCopied holds volumes as a copy does.
func TestNobodyBeginsToUseWhatIsBeingCopied(t *testing.T) {
	f := newFixture(t)
	for _, pool := range []string{"directory", "image"} {
		v := f.create(pool, "in "+pool)
		held, err := f.stock.volumes.get(v.Handle)
		must(t, err)
		one, err := held.hold(t.Context())
		must(t, err)
		two, err := held.hold(t.Context()) // Many may copy a volume that is not in use.
		must(t, err)
		// Stimulus: the volume is held until one and two are called.
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err = f.Source(ctx, backends.Attachment{Handle: v.Handle})
		cancel()
		hasKind(t, "Source", err, backends.Busy)
		one()
		two()
		f.use(v.Handle)
	}
}

func TestFreezingIsBounded(t *testing.T) {
	f := newPoolOn(t, "ext4")
	f.freezeLimit = time.Nanosecond
	v, dir := f.mountedVolume(t, "source")
	_, err := f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	hasKind(t, "CreateSnapshot", err, backends.InUse, "freezeLimit")
	if isFrozen(t, dir) {
		t.Error("the filesystem is still frozen")
	}
	f.holdsOnly("volumes/" + v.Handle)
	f.promised(32 << 20)
}

func TestWhatTheBackendWritesToIsNotFrozen(t *testing.T) {
	f := newPoolOn(t, "ext4")
	v, dir := f.mountedVolume(t, "source")
	inner := newFixture(t, PoolConfig{Name: "image", Type: "image", Path: filepath.Join(dir, "pool")})
	f.pools = append(f.pools, inner.pools...)
	defer func() { f.pools = f.pools[:2] }()
	_, err := f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	hasKind(t, "CreateSnapshot", err, backends.InUse, dir)
	inner.shut()
}

func TestFullImagesShareNoBlocks(t *testing.T) {
	f := newPoolOn(t, "xfs")
	source := f.create("image", "source")
	must(t, os.WriteFile(f.data(source.Handle), bytes.Repeat([]byte("data"), 1<<20), 0o600))
	spec := specIn("image", "full clone")
	spec.Parameters = &Parameters{Allocation: full}
	spec.Capacity.RequiredBytes = 8 << 20
	clone, err := f.Clone(t.Context(), spec, source.Handle)
	must(t, err)
	one, err := os.ReadFile(f.data(source.Handle))
	must(t, err)
	other, err := os.ReadFile(f.data(clone.Handle))
	must(t, err)
	var stat unix.Stat_t
	must(t, unix.Stat(f.data(clone.Handle), &stat))
	if !bytes.Equal(one, other[:4<<20]) || len(other) != 8<<20 || stat.Blocks*512 < 8<<20 {
		t.Errorf("the clone has %d bytes, takes %d, and has the source's data: %t", len(other), stat.Blocks*512,
			bytes.Equal(one, other[:4<<20]))
	}
	if out := testfs.Run(t, "filefrag", "-v", f.data(clone.Handle)); bytes.Contains([]byte(out), []byte("shared")) {
		t.Errorf("the clone shares blocks:\n%s", out)
	}
}

func TestDirectoriesInUse(t *testing.T) {
	f := newFixture(t)
	v := f.create("directory", "one")
	must(t, writeFile(filepath.Join(f.use(v.Handle), "file"), "text"))
	_, err := f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	hasKind(t, "CreateSnapshot", err, backends.InUse, "inUse=copy", "node-1")
	_, err = f.Clone(t.Context(), specIn("directory", "c"), v.Handle)
	hasKind(t, "Clone", err, backends.InUse, "sourceInUse=copy")
	s, err := f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle,
		Parameters: &SnapshotParameters{InUse: copyInUse}})
	must(t, err)
	restored, err := f.Restore(t.Context(), specIn("directory", "r"), s.Handle)
	must(t, err)
	accepting := specIn("directory", "c")
	accepting.Parameters.(*Parameters).SourceInUse = copyInUse
	cloned, err := f.Clone(t.Context(), accepting, v.Handle)
	must(t, err)
	for _, copied := range []*backends.Volume{restored, cloned} {
		if data, err := os.ReadFile(filepath.Join(f.data(copied.Handle), "file")); err != nil || string(data) != "text" {
			t.Errorf("the volume %s has %q, %v", copied.Name, data, err)
		}
	}
}

func TestSourcesOfAnotherType(t *testing.T) {
	f := newFixture(t)
	d, i := f.create("directory", "d"), f.create("image", "i")
	_, err := f.Clone(t.Context(), specIn("image", "c"), d.Handle)
	hasKind(t, "Clone of a directory as an image", err, backends.Invalid, "directory")
	_, err = f.Restore(t.Context(), specIn("directory", "c"), f.snapshot("s", i.Handle).Handle)
	hasKind(t, "Restore of an image as a directory", err, backends.Invalid, "directory")
	_, err = f.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{d.Handle}})
	hasKind(t, "CreateGroup of a directory", err, backends.InUse, "directory")
}

func TestGroupsAcrossPools(t *testing.T) {
	f := newPoolOn(t, "ext4")
	one, two := f.create("image", "one"), f.create("other", "two")
	_, err := f.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{one.Handle, two.Handle}})
	hasKind(t, "CreateGroup across pools", err, backends.InUse, "other")
}

func TestCopiesThatFailLeaveNothing(t *testing.T) {
	f := newFixture(t)
	i, d := f.create("image", "i"), f.create("directory", "d")
	must(t, os.Mkdir(filepath.Join(f.data(d.Handle), "mounted"), 0o700))
	testfs.Bind(t, t.TempDir(), filepath.Join(f.data(d.Handle), "mounted"))
	must(t, os.Remove(f.data(i.Handle)))
	_, imageErr := f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: i.Handle})
	hasKind(t, "a snapshot of an image that is gone", imageErr, backends.Unavailable)
	_, groupErr := f.CreateGroup(t.Context(), backends.GroupSpec{Name: "s", Volumes: []string{i.Handle}})
	hasKind(t, "a group of an image that is gone", groupErr, backends.Unavailable)
	_, treeErr := f.Clone(t.Context(), specIn("directory", "c"), d.Handle)
	hasKind(t, "a clone of a directory with a mount inside", treeErr, backends.InUse)
	f.holdsOnly("volumes/"+i.Handle, "volumes/"+d.Handle)
	f.promised(8 << 20)
	for _, err := range []error{
		second(f.FindSnapshot(t.Context(), backends.SnapshotSpec{Name: "s"})), second(f.FindGroup(t.Context(), "s")),
		second(f.Find(t.Context(), backends.Spec{Name: "c"})),
	} {
		hasKind(t, "finding it", err, backends.NotFound)
	}
}

func second[T any](_ T, err error) error { return err }

func TestWhatIsLateIsNotPublished(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	d, err := f.in("image").newDraft(handleOf(volumePrefix, "late"))
	must(t, err)
	cancel()
	if _, err := d.publish(ctx, volumesFolder, goodVolumeRecord()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	d.discard(0)
	f.holdsOnly()
}

// TestCopyThatIsCancelled ends the context in the middle of a copy, which reads from an endless fifo.
func TestCopyThatIsCancelled(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	held, err := f.stock.volumes.get(v.Handle)
	must(t, err)
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, unix.Mkfifo(fifo, 0o600))
	keeper, err := os.OpenFile(fifo, os.O_RDWR, 0)
	must(t, err)
	defer keeper.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	to := filepath.Join(t.TempDir(), "copy")
	err = f.copyFrozen(ctx, []dataCopy{{from: fifo, volume: held, to: to, size: 4096}}, []freeze.Use{{}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if info, err := os.Stat(to); err == nil && info.Size() != 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the copy is %v, %v", info, err)
	}
}

// After a look at a pool was given up, the pool's location is still known.
func TestWhatIsOursIsNotForgotten(t *testing.T) {
	f := newFixture(t, PoolConfig{Name: "image", Type: "image"})
	p := f.in("image")
	var stat unix.Stat_t
	must(t, unix.Stat(p.path, &stat))
	filesystems := []freeze.Filesystem{{Device: stat.Dev}}
	home := f.dataDir
	f.dataDir = "/proc" // Elsewhere.
	defer func() { f.dataDir = home }()
	begun, goOn := make(chan struct{}), make(chan struct{})
	ctx, giveUp := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() {
		given <- second(look(ctx, f.waiting, p.path, func() struct{} { close(begun); <-goOn; return struct{}{} }))
	}()
	<-begun
	giveUp()
	hasKind(t, "a look that was given up", <-given, backends.Unavailable)
	hasKind(t, "freezing what the pool is on", f.checkNotOurs(filesystems), backends.InUse, p.path)
	close(goOn)
}
