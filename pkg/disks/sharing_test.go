package disks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestUnreadableDisk checks that a disk that cannot be read, as one that fails, is not wiped while a filesystem is
// offered that it may hold, and that it can be wiped otherwise: a disk may be wiped because it is to be thrown away.
func TestUnreadableDisk(t *testing.T) {
	image := filepath.Join(t.TempDir(), "disk.img")
	check(t, os.WriteFile(image, make([]byte, 64<<20), 0o600))
	node := testfs.Attach(t, image)
	e := dirtyBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", node))()
	v := look(t, e)
	f, err := os.OpenFile(node, os.O_WRONLY, 0)
	check(t, err)
	for volume, want := range map[string]bool{"": true, v.Name: true, "disk-of-a-filesystem": false} {
		wanted := report.Wanted{}
		if volume != "" {
			wanted.Offers = []report.Offer{{ID: "a", Volume: volume}}
		}
		check(t, e.Want(wanted))
		e.volumes = map[string]*volumeNote{v.Name: {Unproven: true}} // Nothing is acknowledged.
		others, err := e.sharing(t.Context(), f, v)
		if (err == nil) != want || slices.Contains(others, v.Name) {
			t.Errorf("with the offer of %q it shares its bytes with %q (%v), and can be wiped: %t", volume, others, err, want)
		}
	}
	check(t, f.Close())
	check(t, e.Close())
}
