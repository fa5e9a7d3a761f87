package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// left returns a backend with a volume, a snapshot and a group in a pool that is no longer configured.
func left(t *testing.T) (*fixture, *backends.Volume, []PoolConfig) {
	t.Helper()
	pools := []PoolConfig{{Name: "fast", Type: "image", Path: filepath.Join(t.TempDir(), "fast")},
		{Name: "directory", Type: "directory"}}
	f := newFixture(t, pools...)
	v := f.create("fast", "one")
	must(t, writeFile(f.data(v.Handle), "kept"))
	must(t, os.Truncate(f.data(v.Handle), v.CapacityBytes))
	f.snapshot("one", v.Handle)
	_, err := f.CreateGroup(t.Context(), backends.GroupSpec{Name: "one", Volumes: []string{v.Handle}})
	must(t, err)
	f.shut()
	return f, v, pools
}

func TestPoolThatIsNotConfiguredAnyMore(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, f *fixture, path string) (pools []PoolConfig){
		"an empty configuration": func(*testing.T, *fixture, string) []PoolConfig { return nil },
		"other pools": func(t *testing.T, _ *fixture, _ string) []PoolConfig {
			return []PoolConfig{{Name: "directory", Type: "directory"}, {Name: "new", Type: "image", Path: t.TempDir()}}
		},
		"and its disk is away": func(t *testing.T, _ *fixture, path string) []PoolConfig {
			must(t, os.Rename(path, path+".away"))
			t.Cleanup(func() { _ = os.RemoveAll(path + ".away") }) // It was moved back, unless the test failed.
			return []PoolConfig{{Name: "directory", Type: "directory"}}
		},
		"only directories are left": func(*testing.T, *fixture, string) []PoolConfig {
			return []PoolConfig{{Name: "directory", Type: "directory"}}
		},
		"and an older version kept no index": func(t *testing.T, f *fixture, _ string) []PoolConfig {
			must(t, os.RemoveAll(filepath.Join(f.options.DataDir, "held")))
			return []PoolConfig{{Name: "directory", Type: "directory"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, v, pools := left(t)
			path := pools[0].Path
			f.options.Config = patient(lose(t, f, path)...)
			f.open()
			if strings.Contains(name, "older") {
				f.mayBeAway(v.Handle)
			} else {
				f.isAway(v.Handle, "fast", path, "retired")
				f.copiesAreAway("one", "one")
			}
			if issues, err := f.Inspect(t.Context()); err != nil || len(issues) != 1 || issues[0].Reason != poolNotConfigured {
				t.Errorf("the issues are %+v, %v", issues, err)
			}
			if _, err := f.Create(t.Context(), specIn("fast", "two")); !backends.Is(err, backends.Unavailable) {
				t.Errorf("a new volume of the pool: %v", err)
			}
			must(t, f.Delete(t.Context(), f.create(f.pools[0].name, "another").Handle)) // Other pools are served.
			f.shut()
			if err := os.Rename(path+".away", path); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			f.options.Config = patient(pools...)
			f.open()
			data, err := os.ReadFile(f.use(v.Handle))
			if err != nil || !strings.HasPrefix(string(data), "kept") {
				t.Errorf("configured again, the volume has %.9q, %v", data, err)
			}
			f.promised(12 << 20)
		})
	}
}

// mayBeAway checks that no call reports the volume as gone.
func (f *fixture) mayBeAway(handle string) {
	f.Helper()
	for what, err := range map[string]error{
		"Get": second(f.Get(f.Context(), handle)), "Delete": f.Delete(f.Context(), handle),
		"Source": second(f.Source(f.Context(), backends.Attachment{Handle: handle})),
		"Health": second(f.Health(f.Context(), handle)),
	} {
		hasKind(f, what, err, backends.Unusable, "fast")
	}
}

func TestPoolsOfAnOlderVersionAreIndexedAtTheFirstStart(t *testing.T) {
	f, v, pools := left(t)
	must(t, os.RemoveAll(filepath.Join(f.options.DataDir, "held")))
	f.open()
	if !indexOf(f.dataDir, "fast").holds(t, v.Handle) {
		t.Error("the index lacks the volume")
	}
	f.shut()
	f.options.Config = patient(pools[1:]...)
	f.open()
	f.isAway(v.Handle, pools[0].Path)
}

// TestPoolsBelowTheDataDirectoryNeedNoIndex has the pools of a driver without a configuration, from a version without
// indexes.
func TestPoolsBelowTheDataDirectoryNeedNoIndex(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	f.shut()
	must(t, os.RemoveAll(filepath.Join(f.options.DataDir, "held")))
	f.options.Config = patient(PoolConfig{Name: "directory", Type: "directory"})
	f.open()
	f.isAway(v.Handle, "image")
	_, err := f.Get(t.Context(), handleOf(volumePrefix, "never made"))
	hasKind(t, "Get of what never was", err, backends.NotFound)
}

func (x index) holds(t *testing.T, handle string) bool {
	t.Helper()
	handles, path, err := x.read()
	must(t, err)
	return path != "" && slices.Contains(handles, handle)
}

func TestIndexFollowsWhatIsMadeAndDeleted(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	s := f.snapshot("one", v.Handle)
	g, err := f.CreateGroup(t.Context(), backends.GroupSpec{Name: "one", Volumes: []string{v.Handle}})
	must(t, err)
	spec := specIn("image", "never")
	spec.Parameters = &Parameters{Pool: "image", Allocation: full}
	spec.Capacity.RequiredBytes = 1 << 50
	if _, err := f.Create(t.Context(), spec); err == nil {
		t.Fatal("a volume of a pebibyte was made")
	}
	x := indexOf(f.dataDir, "image")
	have, _, err := x.read()
	must(t, err)
	want := []string{g.Handle, memberHandle(g.Handle, 0), s.Handle, v.Handle}
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the index has %q, want %q", have, want)
	}
	must(t, f.DeleteGroup(t.Context(), g.Handle))
	must(t, f.DeleteSnapshot(t.Context(), s.Handle))
	must(t, f.Modify(t.Context(), v.Handle, &Mutable{OnDelete: pointer(retainData)}))
	must(t, f.Delete(t.Context(), v.Handle))
	if have, _, err := x.read(); err != nil || len(have) != 0 {
		t.Errorf("after all was deleted the index has %q, %v", have, err)
	}
}

func TestRenamedPool(t *testing.T) {
	f, v, pools := left(t)
	pools[0].Name = "quick"
	f.options.Config = patient(pools...)
	f.open()
	f.use(v.Handle)
	must(t, f.Release(t.Context(), v.Handle))
	if issues, err := f.Inspect(t.Context()); err != nil || len(issues) != 0 {
		t.Errorf("the issues are %+v, %v", issues, err)
	}
	_, err := f.Create(t.Context(), specIn("fast", "two"))
	hasKind(t, "Create under the former name", err, backends.Invalid, "quick")
	f.shut()
	f.options.Config = patient(pools[1:]...)
	f.open()
	f.isAway(v.Handle, "quick")
	_, err = f.Get(t.Context(), handleOf(volumePrefix, "never made"))
	hasKind(t, "Get of what never was", err, backends.NotFound)
}

func TestAddedPool(t *testing.T) {
	f, v, pools := left(t)
	f.options.Config = patient(append(pools, PoolConfig{Name: "added", Type: "image", Path: t.TempDir()})...)
	f.open()
	f.use(v.Handle)
	f.create("added", "two")
	if issues, err := f.Inspect(t.Context()); err != nil || len(issues) != 0 {
		t.Errorf("the issues are %+v, %v", issues, err)
	}
}

func TestRetiredPool(t *testing.T) {
	f, v, pools := left(t)
	image := filepath.Join(pools[0].Path, volumesFolder, v.Handle, "image")
	f.options.Config = &Config{Pools: pools, Retired: []string{"fast"}}
	f.opens(backends.Invalid, "fast", "retired")
	f.options.Config = &Config{Pools: pools[1:], Retired: []string{"Fast"}}
	f.opens(backends.Invalid, "Fast")
	f.options.Config = &Config{Pools: pools[1:], Retired: []string{"fast", "never-seen"}}
	for range 2 { // The key may stay.
		f.open()
		hasKind(t, "Delete", f.Delete(t.Context(), v.Handle), backends.NotFound)
		if issues, err := f.Inspect(t.Context()); err != nil || len(issues) != 0 {
			t.Errorf("the issues are %+v, %v", issues, err)
		}
		if _, err := os.Stat(image); err != nil {
			t.Errorf("the data was touched: %v", err)
		}
		f.shut()
	}
	f.open()
	again := f.create("directory", "one")
	f.shut()
	f.options.Config = patient(pools...)
	f.open() // The administrator has reconsidered.
	f.isAway(again.Handle, "same name")
	must(t, f.Release(t.Context(), again.Handle))
	if _, err := f.GetSnapshot(t.Context(), handleOf(snapshotPrefix, "one")); err != nil {
		t.Errorf("what is in one pool only: %v", err)
	}
}

// TestEmptyPoolThatIsNotConfiguredAnyMore checks that an empty pool raises no alarm.
func TestEmptyPoolThatIsNotConfiguredAnyMore(t *testing.T) {
	f := newFixture(t)
	must(t, f.Delete(t.Context(), f.create("directory", "one").Handle))
	f.shut()
	f.options.Config = patient()
	f.open()
	if issues, err := f.Inspect(t.Context()); err != nil || len(issues) != 0 {
		t.Errorf("the issues are %+v, %v", issues, err)
	}
	if strings.Contains(f.log.String(), "level=ERROR") {
		t.Errorf("the log has errors:\n%s", f.log)
	}
	_, err := f.Create(t.Context(), specIn("directory", "two"))
	hasKind(t, "Create in the pool", err, backends.Unavailable, "not in the configuration any more")
}
