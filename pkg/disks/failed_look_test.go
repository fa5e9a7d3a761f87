package disks

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestFailedLook checks that a link that does not lead to its volume is removed even if the look fails: a program that
// follows it would get another volume's disk.
func TestFailedLook(t *testing.T) {
	testfs.NeedRoot(t)
	e := dirtyBench(t, "devices: [{paths: [/dev/none]}]")()
	e.options.Config.Devices[0].Paths = []string{"["} // No configuration has such a pattern: the look fails.
	link := filepath.Join(e.options.LinkDir, "disk-1")
	check(t, os.Symlink("/dev/null", link))
	e.scanOnce(t.Context())
	if _, err := os.Lstat(link); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the link stays (%v)", err)
	}
	if s := e.State(t.Context(), ""); s.Problem == "" || len(s.Volumes) > 0 {
		t.Errorf("the state is %+v, want a problem", s)
	}
	check(t, e.Close())
}
