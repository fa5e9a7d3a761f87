package node_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// TestDamageStopsNobody stages an ext4 whose superblock asks for a kernel panic at the first error. A writer of the raw
// device may have put that there.
func TestDamageStopsNobody(t *testing.T) {
	for _, mode := range []backends.AccessMode{backends.SingleNodeMultiWriter, backends.SingleNodeReaderOnly} {
		for _, options := range [][]string{nil, {"errors=remount-ro"}} {
			w := newWorld(t)
			image := w.image("v", 32)
			for _, command := range [][]string{{"mke2fs", "-q", "-t", "ext4", image}, {"tune2fs", "-e", "panic", image}} {
				if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %v: %s", command, err, out)
				}
			}
			request := w.stageRequest("v")
			request.Use.Mode, request.MountOptions = mode, options
			for range 2 {
				w.stage(request)
				w.restart()
			}
			found, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(request.StagingPath))
			if err != nil || len(found) != 1 || !slices.Contains(strings.Split(found[0].VFSOptions, ","), "errors=remount-ro") {
				t.Errorf("%s with %q: mounted as %+v, %v; want errors=remount-ro", mode, options, found, err)
			}
			w.unstage(request)
			w.wantNothingLeft()
		}
	}
}
