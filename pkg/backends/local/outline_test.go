package local

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// listed is what the lists say, of all and of one volume.
type listed struct {
	volumes             []backends.Volume
	snapshots, ofVolume []backends.Snapshot
}

func (f *fixture) list(volume string) (l listed) {
	f.Helper()
	var errs [3]error
	l.volumes, _, errs[0] = f.List(f.Context(), backends.Page{})
	l.snapshots, _, errs[1] = f.ListSnapshots(f.Context(), "", backends.Page{})
	l.ofVolume, _, errs[2] = f.ListSnapshots(f.Context(), volume, backends.Page{})
	for _, err := range errs {
		must(f, err)
	}
	for _, snapshots := range [][]backends.Snapshot{l.snapshots, l.ofVolume} {
		for i := range snapshots {
			snapshots[i].Ready = true // One that cannot be used now is not.
		}
	}
	return l
}

// TestListsOfPoolThatIsAway checks that lists say the same while a pool is away as before, also after a start of which
// an older version has written the index.
func TestListsOfPoolThatIsAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fast")
	f := newFixture(t, PoolConfig{Name: "fast", Type: "image", Path: path}, PoolConfig{Name: "slow", Type: "image"})
	spec := specIn("fast", "one")
	spec.Settings = map[string]string{"fsType": "xfs"}
	v, err := f.Create(t.Context(), spec)
	must(t, err)
	other := f.create("fast", "other")
	f.create("slow", "another")
	for _, of := range []string{v.Handle, other.Handle} {
		f.snapshot("of "+of, of)
		must(t, second(f.CreateGroup(t.Context(), backends.GroupSpec{Name: "of " + of, Volumes: []string{of}})))
	}
	must(t, second(f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 8 << 20})))
	want := f.list(v.Handle)
	without := func(old bool) {
		f.shut()
		if old {
			files, err := filepath.Glob(filepath.Join(f.options.DataDir, indexFolder, "fast", "l?-*"))
			must(t, err)
			for _, file := range files {
				must(t, os.Truncate(file, 0))
			}
			f.open()
			f.shut()
		}
		must(t, os.Rename(path, path+".away"))
		f.open()
		if now := f.list(v.Handle); !reflect.DeepEqual(now, want) {
			t.Errorf("while the pool is away the lists are %+v\nwant %+v", now, want)
		}
		f.shut()
		must(t, errors.Join(os.RemoveAll(path), os.Rename(path+".away", path))) // A start has made a folder there.
		f.open()
	}
	without(false)
	without(true)
}

// TestListOfUnknownSnapshot has an index of an older version, whose pool is away: the list does not leave out the
// snapshot.
func TestListOfUnknownSnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fast")
	f := newFixture(t, PoolConfig{Name: "fast", Type: "image", Path: path}, PoolConfig{Name: "slow", Type: "image"})
	s := f.snapshot("s", f.create("fast", "one").Handle)
	f.shut()
	must(t, os.Truncate(filepath.Join(f.options.DataDir, indexFolder, "fast", s.Handle), 0))
	must(t, os.Rename(path, path+".away"))
	f.open()
	_, _, err := f.ListSnapshots(t.Context(), "", backends.Page{})
	hasKind(t, "ListSnapshots", err, backends.Unavailable, "fast", s.Handle)
	f.shut()
	must(t, errors.Join(os.RemoveAll(path), os.Rename(path+".away", path))) // A start has made a folder there.
	f.open()
	must(t, second(f.GetSnapshot(t.Context(), s.Handle)))
}
