package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/dirlock"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// opens opens the fixture's options again and checks that this fails.
func (f *fixture) opens(kind backends.Kind, mentions ...string) {
	f.Helper()
	instance, err := open(f.Context(), f.options)
	if err == nil {
		err = backendtest.Close(f.Context(), instance)
	}
	hasKind(f, "Open", err, kind, mentions...)
}

func TestOneProcessAtATime(t *testing.T) {
	f := newFixture(t)
	f.opens(backends.Busy, f.dataDir)
	pools := f.options.Config
	f.options.Config = patient(PoolConfig{Name: "a", Type: "image", Path: filepath.Join(t.TempDir(), "elsewhere")})
	f.opens(backends.Busy, f.dataDir)
	f.options.Config = pools
	shared := filepath.Join(t.TempDir(), "shared")
	one := newFixture(t, PoolConfig{Name: "a", Type: "image", Path: shared})
	two := newFixture(t)
	two.shut()
	two.options.Config = patient(PoolConfig{Name: "b", Type: "image", Path: shared}, PoolConfig{Name: "c", Type: "image"})
	two.open()
	two.create("c", "one")
	two.refuses("b", "another process uses "+shared)
	one.shut()
	two.mend()
	two.create("b", "two")
}

// refuses checks that a pool is not served, and that the driver says why to those who use it and to the cluster.
func (f *fixture) refuses(pool string, mentions ...string) {
	f.Helper()
	_, err := f.Create(f.Context(), specIn(pool, "refused"))
	hasKind(f, "Create", err, backends.Unavailable, mentions...)
	issues, err := f.Inspect(f.Context())
	must(f, err)
	for _, mention := range mentions {
		if len(issues) != 1 || issues[0].Reason != poolUnavailable || !strings.Contains(issues[0].Message, mention) {
			f.Errorf("the issues are %+v, want one with %q", issues, mention)
		}
	}
}

// TestNobodyElseLocks locks all parts of the data directory that another user may open.
func TestNobodyElseLocks(t *testing.T) {
	f := newFixture(t)
	f.shut()
	must(t, os.Chmod(f.dataDir, 0o755)) // as the kubelet makes it
	below, err := filepath.Glob(filepath.Join(f.dataDir, "*"))
	must(t, err)
	locked := 0
	for _, dir := range append(below, f.dataDir) {
		info, err := os.Stat(dir)
		must(t, err)
		if info.Mode().Perm()&0o077 == 0 {
			continue
		}
		other, err := dirlock.Lock(dir)
		must(t, err)
		defer other.Close()
		locked++
	}
	if locked == 0 {
		t.Error("nothing is open to others")
	}
	f.open()
}

func TestPoolThatIsNotThere(t *testing.T) {
	mount := testfs.New(t, "ext4", 64)
	path := filepath.Join(mount, "pool")
	f := newFixture(t, PoolConfig{Name: "disk", Type: "directory", Path: path})
	v := f.create("disk", "one")
	f.shut()
	must(t, os.Rename(path, path+" elsewhere"))
	f.open()
	f.isAway(v.Handle, path, "mount its filesystem")
	f.shut()
	must(t, os.RemoveAll(path))
	must(t, os.Rename(path+" elsewhere", path))
	f.open()
	if _, err := f.Get(t.Context(), v.Handle); err != nil {
		t.Errorf("the volume is gone: %v", err)
	}
	f.shut()
	other := newFixture(t, PoolConfig{Name: "x", Type: "directory", Path: path + " other"})
	other.shut()
	must(t, os.Rename(path, path+" elsewhere"))
	must(t, os.Rename(path+" other", path))
	f.open()
	f.isAway(v.Handle, "another pool", filepath.Join(knownFolder, "disk"))
	f.shut()
	must(t, os.Remove(filepath.Join(f.dataDir, knownFolder, "disk")))
	f.open() // Follow the advice of the message.
}

// A pool whose type was changed in the configuration is refused, and the others are served. The promises to its volumes
// are kept.
func TestPoolOfAnotherType(t *testing.T) {
	f := newFixture(t)
	v, config := f.create("directory", "one"), f.options.Config
	f.shut()
	f.options.Config = patient(PoolConfig{Name: "image", Type: "image"}, PoolConfig{Name: "directory", Type: "image"})
	f.open()
	f.isAway(v.Handle, "directory", "correct the configuration")
	f.refuses("directory", "correct the configuration")
	if owed := f.disks.unservedOn(f.in("image").ledger.disk.id); owed != 4<<20 {
		t.Errorf("%d bytes are kept for it, want those of the volume", owed)
	}
	f.create("image", "two")
	f.options.Config = config
	f.reopen()
	must(t, second(f.Get(t.Context(), v.Handle)))
}

// Of two pools that overlap through a link, the one that was served before is served at each start, and else the first.
func TestPoolsNestedThroughLinks(t *testing.T) {
	a, b := nestedPools(t)
	newFixture(t, a, b).servesOnly("a", "b")
	a, b = nestedPools(t)
	f := newFixture(t, b)
	v := f.create("b", "one")
	f.shut()
	f.options.Config = patient(a, b)
	for range 3 {
		f.reopen()
		f.servesOnly("b", "a")
		must(t, second(f.Get(t.Context(), v.Handle)))
	}
}

// A new pool that is refused for another reason does not keep a pool with volumes from coming back.
func TestRefusedPoolClaimsNoPath(t *testing.T) {
	a, b := nestedPools(t)
	f := newFixture(t, b)
	v := f.create("b", "one")
	f.shut()
	newFixture(t, PoolConfig{Name: "other", Type: "image", Path: a.Path})
	to, err := os.Readlink(b.Path)
	must(t, errors.Join(err, os.Remove(b.Path), os.WriteFile(b.Path, nil, 0o600)))
	f.options.Config = patient(a, b)
	f.open()
	f.isAway(v.Handle, b.Path)
	must(t, errors.Join(os.Remove(b.Path), os.Symlink(to, b.Path)))
	f.mend()
	f.servesOnly("b", "")
}

// nestedPools returns two pools of which the second is in the first through a link.
func nestedPools(t *testing.T) (a, b PoolConfig) {
	t.Helper()
	dir := t.TempDir()
	outer, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	must(t, os.MkdirAll(filepath.Join(outer, "inner"), 0o700))
	must(t, os.Symlink(filepath.Join(outer, "inner"), link))
	return PoolConfig{Name: "a", Type: "image", Path: outer}, PoolConfig{Name: "b", Type: "image", Path: link}
}

// servesOnly checks that one pool is served, and that another one, unless it is "", is refused because of it.
func (f *fixture) servesOnly(name, refused string) {
	f.Helper()
	served := f.served()
	if len(served) != 1 || served[0].name != name {
		f.Fatalf("served are %d pools, want only %q", len(served), name)
	}
	if refused != "" {
		f.refuses(refused, "one in the other")
	}
}

func TestDamagedIdentity(t *testing.T) {
	f := newFixture(t)
	own := filepath.Join(f.in("image").path, poolFile)
	f.shut()
	must(t, os.WriteFile(own, []byte("{"), 0o600))
	f.open()
	_, err := f.Create(t.Context(), specIn("image", "one"))
	hasKind(t, "Create", err, backends.Unavailable, own)
	f.create("directory", "two")
}

func TestReadOnlyPool(t *testing.T) {
	mount := testfs.New(t, "ext4", 64)
	f := newFixture(t, PoolConfig{Name: "disk", Type: "image", Path: filepath.Join(mount, "pool")})
	v, gone := f.create("disk", "one"), f.create("disk", "gone")
	must(t, os.Remove(f.data(gone.Handle)))
	testfs.Run(t, "mount", "-o", "remount,ro", mount)
	t.Cleanup(func() { must(t, unix.Mount("", mount, "", unix.MS_REMOUNT, "")) })
	issues, err := f.Inspect(t.Context())
	if err != nil || len(issues) != 1 || issues[0].Unreachable || issues[0].Reason != "PoolNotWritable" {
		t.Errorf("the issues are %+v, %v", issues, err)
	}
	f.hasHealth(v.Handle, backends.Degraded, "PoolNotWritable")
	if issues, err := f.Health(t.Context(), gone.Handle); err != nil || len(issues) != 2 ||
		issues[0].Reason != "PoolNotWritable" || issues[1].Reason != "DataMissing" {
		t.Errorf("without its data, the health is %+v, %v; want PoolNotWritable and DataMissing", issues, err)
	}
	_, err = f.Create(t.Context(), specIn("disk", "two"))
	hasKind(t, "Create", err, backends.Unavailable, "cannot be written to")
	hasKind(t, "Delete", f.Delete(t.Context(), v.Handle), backends.Unavailable)
	_, err = f.Source(t.Context(), backends.Attachment{Handle: v.Handle})
	hasKind(t, "Source", err, backends.Unavailable)
	f.promised(8 << 20)
}

func TestPoolThatGoesAway(t *testing.T) {
	f := newFixture(t)
	v, d := f.create("image", "one"), f.create("directory", "two")
	p := f.in("image")
	must(t, os.Rename(p.path, p.path+".gone"))
	defer func() { // Close needs it.
		must(t, os.RemoveAll(p.path))
		must(t, os.Rename(p.path+".gone", p.path))
	}()
	for _, reason := range []string{"PoolMissing", "PoolReplaced"} {
		issues, err := f.Inspect(t.Context())
		if err != nil || len(issues) != 1 || !issues[0].Unreachable || issues[0].Reason != reason {
			t.Errorf("the issues are %+v, %v; want %s", issues, err, reason)
		}
		f.hasHealth(v.Handle, backends.Inaccessible, reason)
		hasKind(t, "Delete", f.Delete(t.Context(), v.Handle), backends.Unavailable, p.path)
		_, err = f.Create(t.Context(), specIn("image", "three"))
		hasKind(t, "Create", err, backends.Unavailable)
		if err := os.Mkdir(p.path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	if _, err := f.Get(t.Context(), v.Handle); err != nil {
		t.Errorf("the volume is forgotten: %v", err)
	}
	if issues, err := f.Health(t.Context(), d.Handle); err != nil || len(issues) != 0 {
		t.Errorf("a volume of another pool has %+v, %v", issues, err)
	}
}

func (f *fixture) hasHealth(handle string, status backends.HealthStatus, reason string) {
	f.Helper()
	issues, err := f.Health(f.Context(), handle)
	if err != nil || len(issues) != 1 || issues[0].Status != status || issues[0].Reason != reason ||
		issues[0].Message == "" {
		f.Errorf("the health is %+v, %v; want %s, %s", issues, err, status, reason)
	}
}

func TestHealth(t *testing.T) {
	f := newFixture(t)
	for name, test := range map[string]struct {
		pool, reason string
		damage       func(path string) error
	}{
		"image missing":   {"image", "DataMissing", os.Remove},
		"image truncated": {"image", "ImageTruncated", func(path string) error { return os.Truncate(path, 4096) }},
		"image replaced": {"image", "DataReplaced",
			func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }},
		"directory missing": {"directory", "DataMissing", os.RemoveAll},
		"directory replaced": {"directory", "DataReplaced", func(path string) error {
			return errors.Join(os.RemoveAll(path), os.Symlink("/etc", path))
		}},
	} {
		v := f.create(test.pool, name)
		if issues, err := f.Health(t.Context(), v.Handle); err != nil || len(issues) != 0 {
			t.Errorf("%s: before there is %+v, %v", name, issues, err)
		}
		must(t, test.damage(f.data(v.Handle)))
		f.hasHealth(v.Handle, backends.DataLoss, test.reason)
	}
	f.create("image", "well")
	var unwell []backends.VolumeHealth
	token := ""
	for range 10 {
		page, next, err := f.ListHealth(t.Context(), backends.Page{Limit: 2, Token: token})
		must(t, err)
		unwell = append(unwell, page...)
		if token = next; token == "" {
			break
		}
	}
	if len(unwell) != 5 {
		t.Errorf("unwell are %+v, want five", unwell)
	}
	_, _, err := f.ListHealth(t.Context(), backends.Page{Token: "x"})
	hasKind(t, "a foreign token", err, backends.Busy)
}

func TestTheLastRoomIsGivenOnce(t *testing.T) {
	f := newFixture(t, PoolConfig{Name: "small", Type: "directory", Capacity: "20Mi"})
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for i := range 16 {
		wg.Go(func() {
			_, err := f.Create(t.Context(), specIn("small", string(rune('a'+i))))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made++
			} else {
				hasKind(t, "Create", err, backends.Exhausted, "small", "4194304")
			}
		})
	}
	wg.Wait()
	if made != 5 {
		t.Errorf("%d volumes of 4Mi were made in a pool of 20Mi, want 5", made)
	}
	f.promised(20 << 20)
	c, err := f.Capacity(t.Context(), backends.CapacityQuery{Parameters: &Parameters{Pool: "small"}})
	if err != nil || c.AvailableBytes != 0 {
		t.Errorf("the capacity is %+v, %v; want nothing", c, err)
	}
	f.reopen()
	f.promised(20 << 20)
}

func TestSnapshotsCount(t *testing.T) {
	f := newFixture(t, PoolConfig{Name: "small", Type: "image", Capacity: "16Mi"})
	v := f.create("small", "one")
	s := f.snapshot("s", v.Handle)
	g, err := f.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{v.Handle}})
	must(t, err)
	f.promised(12 << 20)
	f.snapshot("last", v.Handle)
	_, err = f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "more", Volume: v.Handle})
	hasKind(t, "CreateSnapshot", err, backends.Exhausted)
	_, err = f.CreateGroup(t.Context(), backends.GroupSpec{Name: "more", Volumes: []string{v.Handle}})
	hasKind(t, "CreateGroup", err, backends.Exhausted)
	must(t, f.DeleteSnapshot(t.Context(), s.Handle))
	must(t, f.DeleteGroup(t.Context(), g.Handle))
	if _, err = f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "more", Volume: v.Handle}); err != nil {
		t.Errorf("after something was deleted: %v", err)
	}
}

func TestFullFilesystem(t *testing.T) {
	mount := testfs.New(t, "ext4", 32)
	f := newFixture(t,
		PoolConfig{Name: "image", Type: "image", Path: filepath.Join(mount, "images"), Overcommit: pointer(1e6)},
		PoolConfig{Name: "directory", Type: "directory", Path: filepath.Join(mount, "directories"), Overcommit: pointer(1e6)})
	d := f.create("directory", "d")
	must(t, os.WriteFile(filepath.Join(f.data(d.Handle), "large"), make([]byte, 15<<20), 0o600))
	for what, create := range map[string]func() error{
		"a full image": func() error {
			spec := specIn("image", "i")
			spec.Parameters, spec.Capacity.RequiredBytes = &Parameters{Allocation: full}, 64<<20
			_, err := f.Create(t.Context(), spec)
			return err
		},
		"a clone of a directory": func() error {
			_, err := f.Clone(t.Context(), specIn("directory", "c"), d.Handle)
			return err
		},
	} {
		hasKind(t, what, create(), backends.Exhausted)
		f.holdsOnly("volumes/" + d.Handle)
		f.promised(4 << 20)
	}
	must(t, os.WriteFile(filepath.Join(f.data(d.Handle), "small"), make([]byte, 1<<20), 0o600))
	filler, err := os.Create(filepath.Join(mount, "filler"))
	must(t, err)
	defer filler.Close()
	for _, size := range []int{1 << 20, 4096} {
		for err == nil {
			_, err = filler.Write(make([]byte, size))
		}
		err = nil
	}
	issues, err := f.Inspect(t.Context())
	if err != nil || len(issues) != 2 || issues[0].Reason != "PoolFull" || issues[0].Unreachable {
		t.Errorf("the issues are %+v, %v", issues, err)
	}
}

func TestCapacityOfWhatCannotBe(t *testing.T) {
	f := newFixture(t)
	for name, query := range map[string]backends.CapacityQuery{
		"unknown pool":     {Parameters: &Parameters{Pool: "none"}},
		"full directories": {Parameters: &Parameters{Pool: "directory", Allocation: full}},
		"block directories": {Parameters: &Parameters{Pool: "directory"},
			Access: backends.Access{Types: []backends.AccessType{backends.Block}}},
		"another type": {Parameters: 1},
	} {
		if c, err := f.Capacity(t.Context(), query); err != nil || c != (backends.Capacity{}) {
			t.Errorf("%s: the capacity is %+v, %v; want none", name, c, err)
		}
	}
	c, err := f.Capacity(t.Context(), backends.CapacityQuery{})
	if err != nil || c.AvailableBytes <= 0 || c.SmallestBytes != leastImage || c.LargestBytes%imageStep != 0 {
		t.Errorf("the capacity is %+v, %v", c, err)
	}
}

func TestTrashThatCannotBeRemovedStays(t *testing.T) {
	f := newFixture(t)
	v := f.create("directory", "one")
	inside := filepath.Join(f.data(v.Handle), "mounted")
	must(t, os.Mkdir(inside, 0o700))
	outside := t.TempDir()
	must(t, writeFile(filepath.Join(outside, "kept"), "text"))
	testfs.NeedRoot(t)
	testfs.Run(t, "mount", "--bind", outside, inside)
	t.Cleanup(func() { // If the test has failed, the mount is there.
		left, _ := filepath.Glob(f.in("directory").folder(trashFolder) + "/*/data/mounted")
		for _, path := range left {
			_ = unix.Unmount(path, 0)
		}
	})
	must(t, f.Delete(t.Context(), v.Handle))
	f.promised(4 << 20) // Its space is still taken.
	if !strings.Contains(f.log.String(), "trash could not be removed") {
		t.Errorf("the log says nothing of it:\n%s", f.log)
	}
	f.reopen()
	trash, err := filepath.Glob(f.in("directory").folder(trashFolder) + "/*/data/mounted")
	must(t, err)
	if len(trash) != 1 {
		t.Fatalf("the trash has %q, want the mount", trash)
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Errorf("what was mounted inside was removed: %v", err)
	}
	f.settle()
	must(t, unix.Unmount(trash[0], 0))
	f.reopen()
	f.holdsOnly()
	f.promised(0)
}

// If the filesystem of a pool is no longer mounted, the room of the filesystem below is not the pool's.
func TestRoomOfALostPool(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool")
	f := newFixture(t, PoolConfig{Name: "lost", Type: "image", Path: path}, PoolConfig{Name: "other", Type: "image"})
	v := f.create("lost", "one")
	must(t, errors.Join(os.Rename(path, path+".away"), os.Mkdir(path, 0o700)))
	_, err := f.Capacity(t.Context(), backends.CapacityQuery{Parameters: &Parameters{Pool: "lost"}})
	hasKind(t, "Capacity", err, backends.Unavailable, path, "mounted")
	pools, err := f.Pools(t.Context())
	must(t, err)
	if pools[0].AvailableBytes != 0 || !strings.Contains(pools[0].Problem, path) || pools[1].AvailableBytes == 0 {
		t.Errorf("the pools are %+v", pools)
	}
	_, err = f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 8 << 20})
	hasKind(t, "Expand", err, backends.Unavailable, path)
	f.promised(4 << 20)
	must(t, errors.Join(os.Remove(path), os.Rename(path+".away", path)))
	f.room("lost")
}
