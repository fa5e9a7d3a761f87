package disks_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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

// TestHungMount checks that a filesystem whose mount point is on a server that does not answer keeps no other volume
// from being found.
func TestHungMount(t *testing.T) {
	server := stall.Serve(t)
	at, other := filepath.Join(server.Dir, "disk"), testfs.New(t, "ext4", 64)
	must(t, os.Mkdir(at, 0o700))
	file := image(t, 64*mib)
	testfs.Format(t, "ext4", file)
	must(t, unix.Mount(testfs.Attach(t, file), at, "ext4", 0, ""))
	t.Cleanup(func() { must(t, unix.Unmount(at, unix.MNT_DETACH)) }) // A look that was given up may end just now.
	b := newBench(t, fmt.Sprintf("mountPoints: [{paths: ['%s', '%s']}]", at, other))
	server.Stop(t)
	e, _ := b.start(t)
	t.Cleanup(func() { server.Continue(t) }) // Otherwise neither could a look that waits end, nor the mount go.
	s := await(t, e, "found", func(s report.State) bool { return mountedAt(s, other).State == report.Available })
	if v := mountedAt(s, at); v.State != report.Unusable || !strings.Contains(v.Message, "given up") {
		t.Errorf("the mount that does not answer is %+v", v)
	}
}

// mountedAt returns the volume that is mounted at a path.
func mountedAt(s report.State, path string) (found report.Volume) {
	for _, v := range s.Volumes {
		if v.Path == path {
			found = v
		}
	}
	return found
}
