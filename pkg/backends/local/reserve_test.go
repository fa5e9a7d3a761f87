package local

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestReserveIsKeptFree checks that reserved space is never promised, even with overcommit.
func TestReserveIsKeptFree(t *testing.T) {
	mount, twice := testfs.New(t, "ext4", 256), 2.0
	f := newFixture(t, PoolConfig{Name: "all", Type: "image", Path: filepath.Join(mount, "all")},
		PoolConfig{Name: "most", Type: "image", Path: filepath.Join(mount, "most"), Reserve: "100Mi"},
		PoolConfig{Name: "thin", Type: "image", Path: filepath.Join(mount, "thin"), Reserve: "100Mi", Overcommit: &twice},
		PoolConfig{Name: "none", Type: "directory", Path: filepath.Join(mount, "none"), Reserve: "1Gi"})
	all, most, thin, none := f.room("all"), f.room("most"), f.room("thin"), f.room("none")
	if less := all - most; less != 100<<20 {
		t.Errorf("%d bytes are kept free, want 100 MiB", less)
	}
	if thin < 2*most-4096 || thin > 2*most+4096 {
		t.Errorf("with overcommit there are %d bytes, want twice %d", thin, most)
	}
	if none != 0 {
		t.Errorf("a reserve that is larger than the disk leaves %d bytes", none)
	}
	spec := backends.Spec{Name: "v", Capacity: backends.CapacityRange{RequiredBytes: most + 4096},
		Parameters: &Parameters{Pool: "most"}}
	if _, err := f.Create(t.Context(), spec); !backends.Is(err, backends.Exhausted) ||
		!strings.Contains(err.Error(), "104857600 are kept free") {
		t.Errorf("a volume that takes of the reserve: %v, want Exhausted and the reserve", err)
	}
	for _, wrong := range []string{"-1", "much", "0", "%", "0%", "100%", "-1%", "015%", "1.5%", "15 %", "15%%"} {
		c := Config{Pools: []PoolConfig{{Name: "p", Type: "image", Reserve: wrong}}}
		if _, err := c.resolve("/data"); !backends.Is(err, backends.Invalid) || !strings.Contains(err.Error(), "reserve") {
			t.Errorf("the reserve %q: %v, want Invalid", wrong, err)
		}
	}
}

// TestReserveIsAPart checks that a percentage is one of the filesystem's size, not of its free space.
func TestReserveIsAPart(t *testing.T) {
	mount := testfs.New(t, "ext4", 256)
	var has unix.Statfs_t
	if err := unix.Statfs(mount, &has); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, PoolConfig{Name: "all", Type: "image", Path: filepath.Join(mount, "all")},
		PoolConfig{Name: "most", Type: "image", Path: filepath.Join(mount, "most"), Reserve: "20%"})
	want := int64(has.Blocks) * has.Frsize / 100 * 20
	keeps := func() bool { // Room is reported in whole blocks.
		less := f.room("all") - f.room("most")
		return less > want-4096 && less < want+4096
	}
	if !keeps() {
		t.Errorf("%d bytes are left of %d, want %d to be kept free", f.room("most"), f.room("all"), want)
	}
	v, err := f.createOf("all", "first", 64<<20)
	must(t, err)
	f.fill(v.Handle)
	if !keeps() {
		t.Errorf("beside a full volume %d bytes are left of %d, want %d to be kept free", f.room("most"), f.room("all"), want)
	}
}

// TestDirectoriesOnTheNodesDisk looks for the warning that nothing bounds a directory.
func TestDirectoriesOnTheNodesDisk(t *testing.T) {
	apart := testfs.New(t, "ext4", 64)
	for name, row := range map[string]struct {
		pool PoolConfig
		want bool
	}{
		"directory":       {PoolConfig{Type: "directory"}, true},
		"and it is known": {PoolConfig{Type: "directory", SharesDisk: true}, false},
		"on its own disk": {PoolConfig{Type: "directory", Path: filepath.Join(apart, "p")}, false},
		"image":           {PoolConfig{Type: "image"}, false},
	} {
		row.pool.Name = "p"
		f := newFixture(t, row.pool)
		const says = "nothing bounds"
		if have := strings.Count(f.log.String(), says); (have == 1) != row.want || have > 1 {
			t.Errorf("%s: it is warned %d times, want a warning: %t\n%s", name, have, row.want, f.log)
		}
		f.shut()
	}
}
