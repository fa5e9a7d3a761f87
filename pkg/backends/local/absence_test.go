package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// TestAbsenceIsProven wants a proof if nothing contradicts absence, and no proof if a volume of the name may exist but
// cannot be used or seen now.
func TestAbsenceIsProven(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "two")
	f := newFixture(t, PoolConfig{Name: "one", Type: "directory", SharesDisk: true},
		PoolConfig{Name: "two", Type: "directory", SharesDisk: true, Path: elsewhere})
	isAbsent := func(when, name string, want bool) {
		t.Helper()
		spec := specIn("one", name)
		spec.Topology.Requisite = []backends.Topology{f.place}
		if got := f.IsAbsent(t.Context(), spec); got != want {
			t.Errorf("%s: %q is absent: %t, want %t", when, name, got, want)
		}
	}
	f.create("two", "v")
	isAbsent("at first", "v", false) // It is requested in another pool.
	isAbsent("at first", "w", true)

	handle := handleOf(volumePrefix, "w")
	note := filepath.Join(f.in("one").index.dir, handle)
	must(t, os.WriteFile(note, nil, 0o600))
	isAbsent("the index has it, and no shelf", "w", false)
	must(t, os.Remove(note))

	must(t, f.stock.volumes.reserve(handle))
	isAbsent("it is being made", "w", false)
	f.stock.volumes.abandon(handle)
	isAbsent("it was not made", "w", true)

	f.shut()
	must(t, os.Rename(elsewhere, elsewhere+".away"))
	f.open()
	isAbsent("its pool is away", "v", false)
	isAbsent("a pool is away whose contents are known", "w", true)
	f.shut()
	must(t, os.Remove(filepath.Join(f.options.DataDir, indexFolder, "two", pathLink)))
	f.open()
	isAbsent("a pool is away of which nobody knows what is in it", "w", false)
}
