package disks_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/stall"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestHungLoop checks that a loop device whose file is on a server that does not answer keeps no disk from being found:
// the look at each disk asks all loop devices whether they hold it.
func TestHungLoop(t *testing.T) {
	server := stall.Serve(t)
	path := filepath.Join(server.Real, "of-another.img")
	must(t, errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 64*mib)))
	testfs.Attach(t, filepath.Join(server.Dir, "of-another.img"))
	b := newBench(t, fmt.Sprintf("devices: [{paths: [%s]}]", testfs.Attach(t, image(t, 64*mib))))
	server.Stop(t)
	e, _ := b.start(t)
	t.Cleanup(func() { server.Continue(t) }) // Otherwise neither could a look that waits end, nor the loop device go.
	await(t, e, "found", in(report.Available))
}
