package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// newPoolsSharing opens a backend with three pools on one filesystem; on btrfs each pool is on its own subvolume.
func newPoolsSharing(t *testing.T, fsType string, overcommit *float64) (f *fixture, mount string) {
	t.Helper()
	mount = testfs.New(t, fsType, 512)
	var pools []PoolConfig
	for name, of := range map[string]string{"one": "image", "two": "image", "three": "directory"} {
		path := filepath.Join(mount, name)
		if fsType == "btrfs" {
			testfs.Run(t, "btrfs", "subvolume", "create", path)
		}
		pools = append(pools, PoolConfig{Name: name, Type: of, Path: path, Overcommit: overcommit})
	}
	return newFixture(t, pools...), mount
}

// room returns the capacity of a pool.
func (f *fixture) room(pool string) int64 {
	f.Helper()
	for _, e := range f.stock.volumes.all() { // Measurements may be a minute old.
		e.item.last.Store(nil)
	}
	for _, e := range f.stock.snapshots.all() {
		e.item.last.Store(nil)
	}
	c, err := f.Capacity(f.Context(), backends.CapacityQuery{Parameters: &Parameters{Pool: pool}})
	must(f, err)
	if c.AvailableBytes != c.LargestBytes {
		f.Errorf("pool %q has %d bytes for volumes of at most %d", pool, c.AvailableBytes, c.LargestBytes)
	}
	return c.AvailableBytes
}

// comesTo waits until a pool has about the given room; filesystems need some space themselves. xfs and btrfs free space
// in the background.
func (f *fixture) comesTo(pool string, want int64) {
	f.Helper()
	f.settle()
	var have int64
	for end := time.Now().Add(patience); time.Now().Before(end); {
		testfs.Run(f, "sync", "-f", f.in(pool).path)
		have = f.room(pool)
		if have > want-4<<20 && have < want+4<<20 {
			return
		}
	}
	f.Errorf("pool %q has room for %d MiB, want %d", pool, have>>20, want>>20)
}

func (f *fixture) createOf(pool, name string, size int64) (*backends.Volume, error) {
	spec := specIn(pool, name)
	spec.Capacity.RequiredBytes = size
	return f.Create(f.Context(), spec)
}

// fill writes a volume full, to show that the promised space exists.
func (f *fixture) fill(handle string) {
	f.Helper()
	path, size := f.data(handle), f.volumesRecord(handle).SizeBytes
	if f.volumesRecord(handle).Type == directory {
		path = filepath.Join(path, "all")
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	must(f, err)
	defer file.Close()
	for chunk := bytes.Repeat([]byte("data"), 1<<18); size > 0; size -= int64(len(chunk)) {
		_, err := file.Write(chunk[:min(size, int64(len(chunk)))])
		must(f, err)
	}
	must(f, file.Sync())
}

// TestCapacityIsWhatCanBeMade creates the largest volume that GetCapacity allows, not a byte more, and writes it full.
func TestCapacityIsWhatCanBeMade(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		for _, test := range []struct{ pool, allocation string }{{"one", sparse}, {"one", full}, {"three", sparse}} {
			t.Run(fsType+" "+test.pool+" "+test.allocation, func(t *testing.T) {
				f, _ := newPoolsSharing(t, fsType, nil)
				room := f.room("one")
				if other := f.room("two"); other != room || room < 100<<20 {
					t.Errorf("two pools of one filesystem have %d and %d bytes", room, other)
				}
				room = f.room(test.pool)
				_, err := f.createOf(test.pool, "more", room+1)
				hasKind(t, "Create of one byte more", err, backends.Exhausted, test.pool, fmt.Sprint(room + 1)[:5],
					fmt.Sprint(room)[:5])
				spec := specIn(test.pool, "all")
				spec.Parameters.(*Parameters).Allocation = test.allocation
				spec.Capacity.RequiredBytes = room
				v, err := f.Create(t.Context(), spec)
				must(t, err)
				for _, pool := range []string{"one", "two", "three"} {
					if left := f.room(pool); left > room/64 { // The filesystem's own metadata keeps some.
						t.Errorf("%d bytes of %d are left in pool %q", left, room, pool)
					}
				}
				f.fill(v.Handle)
				must(t, f.Delete(t.Context(), v.Handle))
				f.comesTo(test.pool, room)
			})
		}
	}
}

// TestManyPoolsAtOncePromiseWhatIsThere creates volumes in all pools of a filesystem until none has room, and fills all
// volumes.
func TestManyPoolsAtOncePromiseWhatIsThere(t *testing.T) {
	f, _ := newPoolsSharing(t, "ext4", nil)
	room := f.room("one")
	var mu sync.Mutex
	var made []string
	var wg sync.WaitGroup
	for _, pool := range []string{"one", "two", "three"} {
		for i := range 12 {
			wg.Go(func() {
				v, err := f.createOf(pool, fmt.Sprint(pool, i), 32<<20)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					made = append(made, v.Handle)
				} else {
					hasKind(t, "Create", err, backends.Exhausted, pool, fmt.Sprint(32<<20))
				}
			})
		}
	}
	wg.Wait()
	if want := int(room / (32 << 20)); len(made) > want || len(made) < want-1 {
		t.Errorf("%d volumes of 32 MiB were made of %d bytes, want %d", len(made), room, want)
	}
	for _, handle := range made {
		f.fill(handle)
	}
}

// TestWhatTakesRoom compares the capacity of a pool before and after steps that may take room.
func TestWhatTakesRoom(t *testing.T) {
	const size = 64 << 20
	for _, fsType := range []string{"ext4", "xfs"} {
		t.Run(fsType, func(t *testing.T) {
			f, mount := newPoolsSharing(t, fsType, nil)
			var image, dir *backends.Volume
			for _, step := range []struct {
				what  string
				do    func() error
				takes int64
			}{
				{"somebody else's file",
					func() error { return os.WriteFile(filepath.Join(mount, "foreign"), make([]byte, size), 0o600) }, size},
				{"a promise", func() (err error) { image, err = f.createOf("two", "i", size); return err }, size},
				{"what was promised, written", func() error { f.fill(image.Handle); return nil }, 0},
				{"a directory's promise", func() (err error) { dir, err = f.createOf("three", "d", size); return err }, size},
				{"what was promised a directory, written", func() error { f.fill(dir.Handle); return nil }, 0},
				{"a snapshot", func() error { f.snapshot("s", image.Handle); return nil }, size},
				{"the volume, overwritten", func() error { f.fill(image.Handle); return nil }, 0},
				{"the volume, gone", func() error { err := f.Delete(t.Context(), image.Handle); return err }, -size},
				{"the snapshot of a directory", func() error { f.snapshot("ds", dir.Handle); return nil }, size},
			} {
				before := f.room("one")
				must(t, step.do())
				t.Log(step.what)
				f.comesTo("one", before-step.takes)
			}
			room := f.room("one")
			f.reopen()
			f.comesTo("one", room)
		})
	}
}

// TestOvercommit promises more than exists, by the factor that the administrator configured.
func TestOvercommit(t *testing.T) {
	f, _ := newPoolsSharing(t, "ext4", nil)
	room := f.room("one")
	twice, _ := newPoolsSharing(t, "ext4", pointer(2.0))
	if have := twice.room("one"); have < 2*room-8<<20 || have > 2*room+8<<20 {
		t.Errorf("with overcommit 2 there are %d bytes, and %d with 1", have, room)
	}
	_, err := twice.createOf("one", "large", room*3/2)
	must(t, err)
	if have := twice.room("two"); have < room/3 || have > room*2/3 {
		t.Errorf("then there are %d bytes, want half of %d", have, room)
	}
}

// TestCapacityIsACap has a pool whose capacity is less than its filesystem's space.
func TestCapacityIsACap(t *testing.T) {
	mount := testfs.New(t, "ext4", 128)
	f := newFixture(t, PoolConfig{Name: "small", Type: "image", Path: filepath.Join(mount, "a"), Capacity: "16Mi"},
		PoolConfig{Name: "large", Type: "image", Path: filepath.Join(mount, "b"), Capacity: "1Ti"})
	if small, large := f.room("small"), f.room("large"); small != 16<<20 || large > 128<<20 {
		t.Errorf("the pools have %d and %d bytes", small, large)
	}
	_, err := f.createOf("small", "one", 16<<20+1)
	hasKind(t, "Create", err, backends.Exhausted, "small", "capacity is 16777216")
	v, err := f.createOf("large", "two", 4<<20)
	must(t, err)
	room := f.room("large")
	_, err = f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 4<<20 + room + 1})
	hasKind(t, "Expand", err, backends.Exhausted, "large", fmt.Sprint(room+imageStep))
	if _, err := f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 4<<20 + room}); err != nil {
		t.Errorf("Expand by all the room: %v", err)
	}
}

// A directory that holds more than it was promised is copied only if there is room for everything in it.
func TestCopiesOfOverfullDirectories(t *testing.T) {
	f, _ := newPoolsSharing(t, "ext4", nil)
	v := f.create("three", "overfull")
	file, err := os.Create(filepath.Join(f.data(v.Handle), "file"))
	must(t, err)
	must(t, unix.Fallocate(int(file.Fd()), 0, 0, 300<<20))
	must(t, file.Close())
	clone := func() error { return second(f.Clone(t.Context(), specIn("three", "clone"), v.Handle)) }
	hasKind(t, "Clone", clone(), backends.Exhausted, "three", "no room for 3145")
	must(t, os.Truncate(file.Name(), 30<<20))
	must(t, clone())
	f.promised(2 * (4 << 20))
}

// Space that a pod has freed since its volume was measured is not counted twice, as held and as free, whether the
// volume is measured again or not.
func TestRemovedSinceItWasMeasured(t *testing.T) {
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprint("measured again ", again), func(t *testing.T) {
			f, _ := newPoolsSharing(t, "ext4", nil)
			v, err := f.createOf("three", "filled", 200<<20)
			must(t, err)
			f.fill(v.Handle)
			room := f.room("one")
			held, err := f.stock.volumes.get(v.Handle)
			must(t, err)
			if !again {
				m := *held.last.Load()
				m.soon = m.old
				held.last.Store(&m)
			}
			must(t, os.Remove(filepath.Join(f.data(v.Handle), "all")))
			testfs.Run(t, "sync", "-f", f.data(v.Handle))
			_, err = f.createOf("one", "more", room+100<<20)
			hasKind(t, "Create", err, backends.Exhausted)
			must(t, second(f.createOf("one", "as much as before", room-4<<20)))
		})
	}
}

// Space that other volumes have given back since a volume was measured can be promised at once.
func TestGivenBackSinceItWasMeasured(t *testing.T) {
	f, _ := newPoolsSharing(t, "ext4", nil)
	v, err := f.createOf("three", "stays", 100<<20)
	must(t, err)
	f.fill(v.Handle)
	other, err := f.createOf("two", "goes", 100<<20)
	must(t, err)
	f.fill(other.Handle)
	room := f.room("one")
	held, err := f.stock.volumes.get(v.Handle)
	must(t, err)
	m := *held.last.Load()
	m.soon = time.Now() // Measuring it may have taken long on a busy machine.
	held.last.Store(&m)
	must(t, f.Delete(t.Context(), other.Handle))
	f.settle()
	must(t, second(f.createOf("one", "more", room+90<<20)))
}

// While a pool is being opened, the promises on its filesystem are unknown, so no pool on it promises more.
func TestNothingIsPromisedWhileAPoolIsOpened(t *testing.T) {
	f, _ := newPoolsSharing(t, "ext4", nil)
	f.in("one").fails(errors.New("it is still being opened"))
	_, err := f.createOf("two", "early", 4<<20)
	hasKind(t, "Create", err, backends.Unavailable, `"one"`, "still being opened")
	_, err = f.Capacity(t.Context(), backends.CapacityQuery{Parameters: &Parameters{Pool: "three"}})
	hasKind(t, "Capacity", err, backends.Unavailable, `"one"`)
	f.pools[slices.IndexFunc(f.pools, func(p *pool) bool { return p.name == "one" })].trouble.Store(nil)
	must(t, second(f.createOf("two", "in time", 4<<20)))
}

// Data that a pod writes while its volume is measured, and removes later, is not counted twice, as held and as free.
func TestWrittenWhileItIsMeasured(t *testing.T) {
	f, mount := newPoolsSharing(t, "ext4", nil)
	const size = 100 << 20
	ledger := f.in("three").ledger
	free, err := ledger.free()
	must(t, err)
	name := filepath.Join(mount, "written meanwhile")
	write := func(context.Context, string) (int64, error) {
		file, err := os.Create(name)
		if err != nil {
			return 0, err
		}
		return size, errors.Join(unix.Fallocate(int(file.Fd()), 0, 0, size), file.Close())
	}
	var m measured
	ledger.disk.measureOne(t.Context(), measuring{&m, "volume", mount, write, ledger.free}, free)
	must(t, os.Remove(name))
	if have := m.held(); have.bytes != size || have.free > free-size {
		t.Errorf("it holds %d bytes beside %d that are free; want %d, and at most %d", have.bytes, have.free, size,
			free-size)
	}
}

// noneFree is for tests that do not depend on the free space.
func noneFree() (int64, error) { return 0, nil }

// A measurement counts as 0 if the free space at that time is unknown.
func TestMeasuredWithoutWhatIsFree(t *testing.T) {
	f := newFixture(t, PoolConfig{Name: "directory", Type: "directory"})
	var m measured
	bytes := func(context.Context, string) (int64, error) { return 7, nil }
	silent := func() (int64, error) { return 0, unix.EIO }
	f.in("directory").ledger.disk.measureOne(t.Context(), measuring{&m, "volume", "", bytes, silent}, 9)
	if have := m.held(); have.bytes != 0 {
		t.Errorf("it holds %d bytes, want none", have.bytes)
	}
}

// The log says why a measurement failed, whatever Kind the error has.
func TestFailedMeasurementIsLogged(t *testing.T) {
	for _, cause := range []error{unix.EIO, unix.EPERM, backends.Errorf(backends.Unavailable, "it is away")} {
		log := &logBuffer{}
		d := &disk{disks: &disks{log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))},
			measuring: background.New[struct{}](1)}
		fails := func(context.Context, string) (int64, error) { return 0, cause }
		d.measureOne(t.Context(), measuring{&measured{}, "volume", "", fails, noneFree}, 0)
		if !strings.Contains(log.String(), cause.Error()) {
			t.Errorf("the measurement failed with %q, and the log says %q", cause, log.String())
		}
	}
}

// A measurement that takes hours is given up, and the part that was counted counts.
func TestMeasuringIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{disks: &disks{log: slog.New(slog.DiscardHandler)}, measuring: background.New[struct{}](1)}
		var m measured
		d.measureOne(t.Context(), measuring{&m, "volume", "", func(ctx context.Context, _ string) (int64, error) {
			<-ctx.Done()
			return 7, ctx.Err()
		}, noneFree}, 0)
		if have := m.held().bytes; have != 7 {
			t.Errorf("it holds %d bytes, want those that were counted", have)
		}
	})
}

// The outcome of a measurement that outlived its call does not replace the one that the next call requests.
func TestMeasuredAfterItWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{disks: &disks{log: slog.New(slog.DiscardHandler)}, measuring: background.New[struct{}](1)}
		var m measured
		times := int64(0)
		slow := func(ctx context.Context, _ string) (int64, error) {
			<-time.After(time.Second)
			times++
			return times, ctx.Err()
		}
		measure := func(patience time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			d.measureOne(ctx, measuring{&m, "volume", "", slow, noneFree}, 0)
		}
		measure(time.Millisecond)
		<-time.After(2 * measureAge)
		if have := m.held().bytes; have != 1 || !m.isDue(0) {
			t.Fatalf("it was measured %d times, and is due: %t", have, m.isDue(0))
		}
		measure(time.Hour)
		if have := m.held().bytes; have != 2 {
			t.Errorf("it was measured %d times, want once more", have)
		}
	})
}

// The volume that has waited longest is measured first, so that none is left out, however many there are.
func TestMeasuringIsInTurn(t *testing.T) {
	f := newFixture(t, PoolConfig{Name: "directory", Type: "directory"})
	for _, name := range []string{"a", "b", "c", "d"} {
		f.create("directory", name)
	}
	f.room("directory")
	volumes := f.stock.volumes.all()
	for i, entry := range volumes { // The last in the order of handles was measured first; one was never measured.
		m := *entry.item.last.Load()
		m.old = time.Now().Add(-time.Duration(i) * time.Hour)
		entry.item.last.Store(&m)
	}
	volumes[1].item.last.Store(nil)
	f.in("directory").ledger.disk.measure(t.Context(), 0)
	var have []time.Time
	for _, i := range []int{1, 3, 2, 0} {
		have = append(have, volumes[i].item.last.Load().old)
	}
	if !slices.IsSortedFunc(have, time.Time.Compare) {
		t.Errorf("the volumes were measured at %v, want one after the other", have)
	}
}

// The clock is set back by an hour: measurements must not stay valid for that much longer.
func TestMeasurementsKeepNoTimeOfDay(t *testing.T) {
	var m measured
	f := newFixture(t, PoolConfig{Name: "directory", Type: "directory"})
	f.in("directory").ledger.disk.measureOne(t.Context(), measuring{&m, "volume", t.TempDir(), treeBytes, noneFree}, 0)
	if m.isDue(0) || !strings.Contains(m.last.Load().old.String(), " m=") { // The monotonic clock (package time).
		t.Errorf("it is due at %v, by the time of day", m.last.Load().old)
	}
}
