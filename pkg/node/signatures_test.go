package node_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/internal/samples"
)

// A device that holds anything at all is never formatted, whatever it is staged as: not one byte changes, and the error
// names what was found. It may be mounted only as what it is.
func TestSignatures(t *testing.T) {
	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "SAMPLE\tFOUND\text4\txfs\tbtrfs")
	all := samples.All()
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			w := newWorld(t)
			image := w.image("v", s.Size()>>20)
			s.Make(t, image)
			before := checksum(t, image)
			row := s.Name + "\t" + s.Want
			for _, fsType := range filesystem.Types() {
				row += "\t"
				if s.Want == fsType {
					row += "mounted"
					continue // tested by TestStage and others
				}
				row += w.refused(image, s.Want, fsType)
				if checksum(t, image) != before {
					t.Fatalf("staging it as %s changed it", fsType)
				}
			}
			fmt.Fprintln(out, row)
			w.wantNothingLeft()
		})
	}
	_ = out.Flush() // to memory
	t.Logf("%d signatures, each staged as the filesystems that it is not:\n%s", len(all), table.String())
}

// refused stages an image as a filesystem that it does not hold, and returns the Kind of the refusal.
func (w *world) refused(image, holds, fsType string) string {
	w.Helper()
	request := w.stageRequest("v")
	request.Use.FSType = fsType
	for range 2 { // as the kubelet would
		err := w.service.Stage(w.context(), request)
		w.want(err, backends.Invalid, "holds "+holds, fsType)
		if failure, ok := errors.AsType[*backends.Error](err); err == nil || !ok || failure.Kind != backends.Invalid {
			return "NOT REFUSED"
		}
		w.restart()
	}
	if _, err := os.Stat(image); err != nil {
		w.Error(err)
	}
	return backends.Invalid.String()
}
