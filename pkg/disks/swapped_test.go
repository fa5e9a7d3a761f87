package disks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestSwappedWhileOneHangs checks that a link that leads to another disk is removed while a look still waits for a
// third, which does not answer.
func TestSwappedWhileOneHangs(t *testing.T) {
	testfs.NeedRoot(t)
	file := filepath.Join(t.TempDir(), "disk.img")
	check(t, os.WriteFile(file, make([]byte, 1<<20), 0o600))
	e := dirtyBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", testfs.Attach(t, file)))()
	link := filepath.Join(e.options.LinkDir, "disk-1")
	check(t, os.Symlink("/dev/null", link))
	found, err := e.find(t.Context(), func(string) discovery.History {
		for t.Context().Err() == nil { // The disk does not answer as long as the link is there.
			if _, err := os.Lstat(link); errors.Is(err, os.ErrNotExist) {
				return discovery.History{Taken: true}
			}
			<-time.After(time.Millisecond)
		}
		return discovery.History{}
	})
	check(t, err)
	if len(found) != 1 || found[0].State != report.Offered {
		t.Errorf("found are %+v, want one volume that the look did not give up", found)
	}
	check(t, e.Close())
}
