package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/stall"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// fill leaves no byte and no name free on a filesystem.
func fill(t *testing.T, dir string) {
	t.Helper()
	testfs.Fill(t, dir)
	for _, add := range []func(path string) error{
		// btrfs reserves space for metadata. Long links, which others do not accept, fill it in a quarter of the time that
		// directories need.
		func(path string) error { return os.Symlink(strings.Repeat("x", 3000), path) },
		func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		var err error
		for n := 0; err == nil && n < 1<<16; n++ {
			err = add(filepath.Join(dir, unique("filler")))
		}
		if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.ENAMETOOLONG) {
			t.Fatalf("the filesystem is not full: %v", err)
		}
	}
}

// empty frees space, and waits until the filesystem reports it: btrfs updates its free space at a commit.
func empty(t *testing.T, dir string) {
	t.Helper()
	fillers, err := filepath.Glob(filepath.Join(dir, "filler*"))
	must(t, err)
	for _, path := range fillers {
		must(t, os.RemoveAll(path))
	}
	testfs.Run(t, "sync", "-f", dir)
}

func TestFullPoolIsServed(t *testing.T) {
	for fsType, size := range map[string]int64{"ext4": 32, "xfs": 300, "btrfs": 128} {
		t.Run(fsType, func(t *testing.T) {
			mount := testfs.New(t, fsType, size)
			f := newFixture(t,
				PoolConfig{Name: "disk", Type: "image", Path: filepath.Join(mount, "pool"), Capacity: "1Ti"},
				PoolConfig{Name: "other", Type: "directory"})
			a, b, c := f.create("disk", "a"), f.create("disk", "b"), f.create("disk", "c")
			s := f.snapshot("s", c.Handle)
			f.use(b.Handle)
			must(t, f.Modify(t.Context(), c.Handle, &Mutable{OnDelete: pointer(retainData)}))
			p := f.in("disk")
			f.shut()
			must(t, os.Mkdir(filepath.Join(p.folder(stagingFolder), "draft"), 0o700))
			fill(t, mount)
			f.open()
			if !f.in("disk").served() {
				t.Fatal("the pool is not served")
			}
			_, err := f.Create(t.Context(), specIn("disk", "more"))
			hasKind(t, "Create", err, backends.Exhausted)
			f.create("other", "more")
			must(t, f.Release(t.Context(), b.Handle))
			must(t, f.Delete(t.Context(), b.Handle))
			must(t, f.Delete(t.Context(), a.Handle))
			if err := f.Delete(t.Context(), c.Handle); fsType != "btrfs" || !backends.Is(err, backends.Exhausted) {
				must(t, err) // Retaining frees nothing, and a btrfs may have no room for a rename.
			}
			must(t, f.DeleteSnapshot(t.Context(), s.Handle))
			f.settle()
			empty(t, mount)
			f.reopen()
			spec := specIn("disk", "at last")
			spec.Capacity.RequiredBytes = 1 << 20
			must(t, second(f.Create(t.Context(), spec)))
			if want := fsType != "ext4"; f.in("disk").reflink.Load() != want {
				t.Errorf("with room again, reflinks are %t", f.in("disk").reflink.Load())
			}
		})
	}
}

// TestEveryStepOfADeletionInPlace constructs the state after a crash at each step.
func TestEveryStepOfADeletionInPlace(t *testing.T) {
	f := newFixture(t)
	for name, step := range map[string]func(dir string) error{
		"data gone":   func(dir string) error { return os.Remove(filepath.Join(dir, "image")) },
		"record gone": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)) },
	} {
		v := f.create("image", name)
		dir := f.dir(v.Handle)
		f.shut()
		must(t, step(dir))
		f.open()
		if err := f.Delete(t.Context(), v.Handle); err != nil && !backends.Is(err, backends.NotFound) {
			t.Errorf("%s: Delete: %v", name, err)
		}
		f.holdsOnly()
		f.promised(0)
	}
}

func TestPoolThatGetsRoomIsProbedAgain(t *testing.T) {
	mount := testfs.New(t, "xfs", 300)
	f := newFixture(t, PoolConfig{Name: "disk", Type: "image", Path: filepath.Join(mount, "pool")})
	f.shut()
	fill(t, mount)
	f.open()
	if f.in("disk").reflink.Load() {
		t.Error("reflinks were tried without room")
	}
	empty(t, mount)
	f.mend()
	if !f.in("disk").reflink.Load() {
		t.Error("reflinks were not tried again")
	}
}

// readOnly makes the filesystem read-only until the returned function is called.
func readOnly(t *testing.T, mount string) (writable func()) {
	t.Helper()
	testfs.Run(t, "mount", "-o", "remount,ro", mount)
	return func() { must(t, unix.Mount("", mount, "", unix.MS_REMOUNT, "")) }
}

func TestReadOnlyPoolIsServed(t *testing.T) {
	for _, restart := range []bool{false, true} {
		mount := testfs.New(t, "ext4", 64)
		f := newFixture(t, PoolConfig{Name: "disk", Type: "image", Path: filepath.Join(mount, "pool")},
			PoolConfig{Name: "image", Type: "image"})
		v, idle := f.create("disk", "one"), f.create("disk", "idle")
		f.use(v.Handle)
		p := f.in("disk")
		must(t, os.Mkdir(filepath.Join(p.folder(stagingFolder), "draft"), 0o700))
		f.shut()
		writable := readOnly(t, mount)
		f.open()
		f.create("image", "elsewhere")
		if _, err := f.Get(t.Context(), idle.Handle); err != nil {
			t.Errorf("Get: %v", err)
		}
		hasKind(t, "Delete of what is in use", f.Delete(t.Context(), v.Handle), backends.InUse)
		must(t, f.Release(t.Context(), v.Handle))
		must(t, f.Release(t.Context(), v.Handle))
		must(t, f.Release(t.Context(), idle.Handle))
		hasKind(t, "Delete", f.Delete(t.Context(), v.Handle), backends.Unavailable)
		f.mend()
		if restart {
			f.reopen()
			writable()
			f.reopen()
		} else {
			writable()
		}
		f.mend()
		f.holdsOnly("volumes/"+v.Handle, "volumes/"+idle.Handle, "volumes/"+handleOf(volumePrefix, "elsewhere"))
		f.use(v.Handle)
		f.reopen() // The note of the release is no longer valid.
		hasKind(t, "Delete of what is in use", f.Delete(t.Context(), v.Handle), backends.InUse)
		must(t, f.Release(t.Context(), v.Handle))
		must(t, f.Delete(t.Context(), v.Handle))
		if left, err := filepath.Glob(filepath.Join(f.dataDir, releasedFolder, "*")); err != nil || len(left) != 0 {
			t.Errorf("notes of releases are left: %q, %v", left, err)
		}
	}
}

// A deletion fails in a read-only pool. Whenever the driver is restarted after that, the volume is not in use, because
// it was unstaged.
func TestFailedDeleteKeepsTheRelease(t *testing.T) {
	for name, restart := range map[string]func(f *fixture, writable func()){
		"before the pool is mended": func(f *fixture, writable func()) { f.reopen(); writable() },
		"after the pool is mended":  func(f *fixture, writable func()) { writable(); f.reopen() },
	} {
		t.Run(name, func(t *testing.T) {
			mount := testfs.New(t, "ext4", 64)
			f := newFixture(t, PoolConfig{Name: "disk", Type: "image", Path: filepath.Join(mount, "pool")})
			v := f.create("disk", "one")
			f.use(v.Handle)
			f.shut()
			writable := readOnly(t, mount)
			f.open()
			must(t, f.Release(t.Context(), v.Handle))
			for range 2 {
				hasKind(t, "Delete", f.Delete(t.Context(), v.Handle), backends.Unavailable)
			}
			restart(f, writable)
			must(t, f.Delete(t.Context(), v.Handle))
			f.create("disk", "one") // The notes of the earlier volume are no longer valid.
			f.use(v.Handle)
			f.reopen()
			hasKind(t, "Delete of what is in use", f.Delete(t.Context(), v.Handle), backends.InUse)
		})
	}
}

func TestReleaseWhileThePoolIsAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool")
	f := newFixture(t, PoolConfig{Name: "disk", Type: "image", Path: path})
	v := f.create("disk", "one")
	f.use(v.Handle)
	f.shut()
	must(t, os.Rename(path, path+".away"))
	f.open()
	must(t, f.Release(t.Context(), v.Handle))
	must(t, f.Release(t.Context(), "../../escape"))
	must(t, os.RemoveAll(path))
	must(t, os.Rename(path+".away", path))
	f.mend()
	must(t, f.Delete(t.Context(), v.Handle))
}

func TestOneBadPoolStopsItselfOnly(t *testing.T) {
	dir := t.TempDir()
	bad := PoolConfig{Name: "bad", Type: "image", Path: filepath.Join(dir, "bad")}
	for name, spoil := range map[string]func() (heal func() error, err error){
		"not mounted": func() (func() error, error) {
			return func() error {
				return errors.Join(os.RemoveAll(bad.Path), os.Rename(bad.Path+".away", bad.Path))
			}, os.Rename(bad.Path, bad.Path+".away")
		},
		"a loop of links": func() (func() error, error) {
			return func() error { return errors.Join(os.Remove(bad.Path), os.Rename(bad.Path+".away", bad.Path)) },
				errors.Join(os.Rename(bad.Path, bad.Path+".away"), os.Symlink(bad.Path, bad.Path))
		},
		"its trash cannot be read": func() (func() error, error) {
			trash := filepath.Join(bad.Path, trashFolder)
			return func() error { return errors.Join(os.Remove(trash), os.Mkdir(trash, 0o700)) },
				errors.Join(os.Remove(trash), os.WriteFile(trash, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, bad, PoolConfig{Name: "directory", Type: "directory"})
			v, well := f.create("bad", "one"), f.create("directory", "well")
			f.shut()
			heal, err := spoil()
			must(t, err)
			f.open()
			f.isAway(v.Handle, "bad", bad.Path)
			f.use(well.Handle)
			_, err = f.Create(t.Context(), specIn("bad", "two"))
			hasKind(t, "Create in the pool", err, backends.Unavailable, bad.Path)
			if issues, err := f.Inspect(t.Context()); err != nil || len(issues) != 1 || !issues[0].Unreachable ||
				issues[0].Reason != poolUnavailable {
				t.Errorf("the issues are %+v, %v", issues, err)
			}
			f.mend()
			f.isAway(v.Handle, "bad", bad.Path)
			must(t, heal())
			f.mend()
			f.use(v.Handle)
			must(t, f.Release(t.Context(), v.Handle))
			must(t, f.Delete(t.Context(), v.Handle))
			f.shut()
			must(t, os.RemoveAll(bad.Path))
		})
	}
}

func TestPoolsAreTriedAgainInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "pool")
		f := newFixture(t, PoolConfig{Name: "disk", Type: "image", Path: path})
		v := f.create("disk", "one")
		f.shut()
		must(t, os.Rename(path, path+".away"))
		f.open()
		f.isAway(v.Handle, path)
		must(t, errors.Join(os.RemoveAll(path), os.Rename(path+".away", path)))
		<-time.After(mendEvery + time.Second) // It takes no real time.
		synctest.Wait()
		f.use(v.Handle)
		f.shut() // Inside the bubble.
	})
}

// TestDiskThatFails has a filesystem whose device returns EIO.
func TestDiskThatFails(t *testing.T) {
	testfs.NeedRoot(t)
	file := filepath.Join(t.TempDir(), "filesystem")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Truncate(file, 64<<20))
	testfs.Format(t, "ext4", file)
	device := testfs.Attach(t, file)
	mount := testfs.Mount(t, device)
	f := newFixture(t, PoolConfig{Name: "disk", Type: "image", Path: filepath.Join(mount, "pool")},
		PoolConfig{Name: "directory", Type: "directory"})
	v := f.create("disk", "one")
	f.shut()
	testfs.Run(t, "umount", mount) // This drops the kernel's caches.
	testfs.Run(t, "mount", device, mount)
	must(t, os.Truncate(file, 8192)) // All further reads fail.
	f.open()
	f.isAway(v.Handle, "disk")
	f.use(f.create("directory", "well").Handle)
}

// TestDiskThatHangs has a filesystem whose server does not answer while the driver starts.
func TestDiskThatHangs(t *testing.T) {
	server := stall.Serve(t)
	f := newFixture(t, PoolConfig{Name: "slow", Type: "image", Path: filepath.Join(server.Dir, "pool")},
		PoolConfig{Name: "directory", Type: "directory"})
	v := f.create("slow", "one")
	f.shut()
	f.options.Config.(*Config).Limits = Limits{} // The test needs them to expire.
	server.Stop(t)
	f.open()
	f.awaits("directory")
	f.isAway(v.Handle, "slow")
	f.use(f.create("directory", "well").Handle)
	server.Continue(t)
	f.awaits("slow")
	f.use(v.Handle)
	server.Stop(t)
	f.hasHealth(v.Handle, backends.Inaccessible, poolSilent)
	if unwell, _, err := f.ListHealth(t.Context(), backends.Page{}); err != nil || len(unwell) != 1 {
		t.Errorf("those unwell are %+v, %v; want the one that hangs", unwell, err)
	}
	if issues, err := f.Inspect(t.Context()); err != nil || len(issues) != 1 || issues[0].Reason != poolSilent {
		t.Errorf("the issues are %+v, %v", issues, err)
	}
	server.Continue(t)
	must(t, f.Release(t.Context(), v.Handle))
	f.shut()
	server.Stop(t)
	f.options.Config = &Config{Pools: []PoolConfig{{Name: "directory", Type: "directory"}}}
	f.open() // It is no longer configured, either.
	f.isAway(v.Handle, "slow", "retired")
	server.Continue(t)
}

// A frozen filesystem on a mount that does not answer delays no pool, and is thawed once the mount answers.
func TestThawThatHangs(t *testing.T) {
	server := stall.Serve(t)
	f := newFixture(t, PoolConfig{Name: "image", Type: "image"})
	spec := specIn("image", "one")
	spec.Capacity.RequiredBytes = 32 << 20 // ext4 needs some of it.
	v, err := f.Create(t.Context(), spec)
	must(t, err)
	path, at := f.use(v.Handle), filepath.Join(server.Dir, "mounted")
	must(t, os.Mkdir(at, 0o700))
	testfs.Format(t, "ext4", path)
	testfs.Run(t, "mount", testfs.Attach(t, path), at)
	must(t, frozenNote.set(f.dir(v.Handle), f.boot))
	f.shut()
	t.Cleanup(func() { must(t, unix.Unmount(at, 0)) })
	leaveFrozen(t, at)
	t.Cleanup(func() { server.Continue(t) })
	f.options.Config.(*Config).Limits = Limits{} // The test needs them to expire.
	server.Stop(t)
	f.open()
	f.awaits("image")
	held, err := f.stock.volumes.get(v.Handle)
	must(t, err)
	if !held.frozen.Load() {
		t.Error("it is not known that it may be frozen still")
	}
	server.Continue(t)
	for begun := time.Now(); held.frozen.Load() && time.Since(begun) < patience; <-time.After(time.Millisecond) {
		f.mend()
	}
	if isFrozen(t, at) {
		t.Error("it is still frozen")
	}
}

// A pool whose server does not answer reports that when it is asked for its room, and delays no other pool.
func TestPoolThatHangsStopsItselfOnly(t *testing.T) {
	server := stall.Serve(t)
	f := newFixture(t, PoolConfig{Name: "slow", Type: "directory", Path: filepath.Join(server.Dir, "pool")},
		PoolConfig{Name: "quick", Type: "directory"})
	for _, name := range []string{"a", "b", "c"} { // more than are measured at a time
		f.create("slow", name)
	}
	quick := f.create("quick", "one").Handle
	f.shut()
	f.options.Config.(*Config).Limits = Limits{} // The test needs them to expire.
	f.open()
	f.awaits("slow")
	f.awaits("quick")
	server.Stop(t)
	for round := range 2 {
		pools, err := f.Pools(t.Context())
		must(t, err)
		if pools[0].AvailableBytes != 0 || !strings.Contains(pools[0].Problem, "asking for the room") {
			t.Errorf("round %d: the pool that hangs is %+v", round, pools[0])
		}
		if pools[1].AvailableBytes == 0 || pools[1].Problem != "" {
			t.Errorf("round %d: the other is %+v", round, pools[1])
		}
	}
	if v, err := f.stock.volumes.get(quick); err != nil || v.last.Load() == nil {
		t.Errorf("the volume in the other pool was not measured (%v)", err)
	}
	hasKind(t, "Create", second(f.Create(t.Context(), specIn("slow", "more"))), backends.Unavailable)
	server.Continue(t)
	for begun := time.Now(); ; <-time.After(time.Millisecond) {
		pools, err := f.Pools(t.Context())
		must(t, err)
		if pools[0].Problem == "" {
			break
		}
		if time.Since(begun) > patience {
			t.Fatalf("it answers again, and the pool is %+v", pools[0])
		}
	}
	f.promised(4 * (4 << 20)) // Room that was taken after its call gave up is not promised.
}

// A full pool frees space only through its users. So its volumes can come into use and go out of use, are known to be
// in use after a restart, and are deleted when they are not. A volume that came into use before, with the other note,
// is treated the same.
func TestFullPoolIsUsed(t *testing.T) {
	for fsType, size := range map[string]int64{"ext4": 32, "xfs": 300, "btrfs": 128} {
		t.Run(fsType, func(t *testing.T) {
			mount := testfs.New(t, fsType, size)
			f := newFixture(t,
				PoolConfig{Name: "disk", Type: "image", Path: filepath.Join(mount, "disk"), Capacity: "1Ti"},
				PoolConfig{Name: "dir", Type: "directory", Path: filepath.Join(mount, "dir")})
			var handles []string
			for _, pool := range []string{"disk", "dir"} {
				for _, name := range []string{"idle", "used"} {
					handles = append(handles, f.create(pool, pool+" "+name).Handle)
				}
			}
			for _, i := range []int{1, 3} {
				must(t, os.Symlink(f.boot, filepath.Join(f.dir(handles[i]), string(inUseNote)))) // as all versions note it
			}
			f.shut()
			fill(t, mount)
			f.open()
			for round := range 2 {
				for _, handle := range handles {
					f.use(handle)
					f.use(handle)
				}
				f.reopen()
				for _, handle := range handles {
					hasKind(t, "Delete of what is in use", f.Delete(t.Context(), handle), backends.InUse)
					must(t, f.Release(t.Context(), handle))
				}
				if round == 0 {
					f.reopen()
				}
			}
			for _, handle := range handles {
				must(t, f.Delete(t.Context(), handle))
			}
			f.settle()
			f.holdsOnly()
		})
	}
}

// The default install has its pools in the data directory, and so on the same disk.
func TestFullDefaultInstallIsUsed(t *testing.T) {
	for fsType, size := range map[string]int64{"ext4": 32, "xfs": 300, "btrfs": 128} {
		t.Run(fsType, func(t *testing.T) {
			mount := testfs.New(t, fsType, size)
			f := newFixtureIn(t, filepath.Join(mount, "data"))
			handles := []string{f.create("image", "a").Handle, f.create("image", "b").Handle, f.create("directory", "c").Handle}
			fill(t, mount)
			for _, restarted := range []bool{false, true} {
				for _, handle := range handles {
					f.use(handle)
					f.use(handle)
				}
				if restarted {
					f.reopen()
				}
				for _, handle := range handles {
					hasKind(t, "Delete of what is in use", f.Delete(t.Context(), handle), backends.InUse)
					must(t, f.Release(t.Context(), handle))
				}
			}
			f.use(handles[0])
			empty(t, mount)
			f.reopen()
			f.use(handles[0])
			must(t, f.Release(t.Context(), handles[0]))
			f.reopen()
			for _, handle := range handles {
				must(t, f.Delete(t.Context(), handle))
			}
			f.holdsOnly()
			if left, err := f.spareRoom.Notes(); err != nil || len(left) > 0 {
				t.Errorf("notes are left: %q, %v", left, err)
			}
		})
	}
}

// While the disk of a default install is full, 255 volumes come into use. The next one is refused, and the error says
// that the room for its note is taken.
func TestRoomForNotesIsTaken(t *testing.T) {
	mount := testfs.New(t, "xfs", 300)
	f := newFixtureIn(t, filepath.Join(mount, "data"))
	handle := f.create("image", "a").Handle
	for n := range 255 {
		must(t, f.spareRoom.Put(fmt.Sprint(n), nil))
	}
	fill(t, mount)
	_, err := f.Source(t.Context(), backends.Attachment{Handle: handle})
	hasKind(t, "Source", err, backends.Exhausted, "for 255 notes, is taken by others: free some on the disk")
	must(t, f.spareRoom.Drop("0"))
	f.use(handle)
}
