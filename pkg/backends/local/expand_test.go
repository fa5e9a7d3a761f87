package local

import (
	"os"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// An expansion that fails, and cannot be undone, keeps its promise of room. Whoever tries it again takes no other.
func TestFailedExpandTakesRoomOnce(t *testing.T) {
	const some, more = 6 << 20, 8 << 20
	for _, pool := range []string{"image", "directory"} {
		t.Run(pool, func(t *testing.T) {
			f := newFixture(t)
			v, other := f.create(pool, "one"), f.create(pool, "another")
			staging := f.in(pool).folder(stagingFolder)
			expand := func(handle string, size int64) error {
				return second(f.Expand(t.Context(), handle, backends.CapacityRange{RequiredBytes: size}))
			}
			must(t, os.Remove(staging)) // No record can be replaced: neither by the new one nor by the old.
			for range 3 {
				for _, handle := range []string{v.Handle, other.Handle} {
					hasKind(t, "Expand", expand(handle, more), backends.Unavailable, "interrupted")
				}
				f.promised(2 * more)
			}
			must(t, os.Mkdir(staging, 0o700))
			must(t, f.Delete(t.Context(), other.Handle))
			f.promised(more)
			must(t, expand(v.Handle, some))
			f.promised(some)
			must(t, f.Delete(t.Context(), v.Handle))
			f.promised(0)
		})
	}
}
