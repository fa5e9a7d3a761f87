package node_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/local"
)

// readAhead returns the read-ahead in KiB of a filesystem's device.
func (w *world) readAhead(path string) int {
	w.Helper()
	var stat unix.Stat_t
	w.must(unix.Stat(path, &stat))
	link, err := os.Readlink("/sys/dev/block/" + fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev)))
	w.must(err)
	device, err := os.Open("/dev/" + filepath.Base(link))
	w.must(err)
	defer device.Close()
	sectors, err := unix.IoctlGetInt(int(device.Fd()), unix.BLKRAGET)
	w.must(err)
	return sectors / 2
}

// The class parameter readAheadKiB of the local backend reaches the device of the staged volume. No volume inherits the
// value of an earlier one with the same loop device.
func TestReadAheadOfAClass(t *testing.T) {
	w := newWorld(t)
	instance, err := local.Definition().Open(w.context(),
		backends.Options{Driver: "local.test", DataDir: w.path("pool"), NodeID: "node-1"})
	w.must(err)
	t.Cleanup(func() { w.must(backendtest.Close(t.Context(), instance)) })
	large, huge, fallback := 1024, 64<<10, 0 // more and less than the kernel's choice, which shows with the first volume
	for _, test := range []struct {
		name  string
		class *int
		want  int
	}{{"none", nil, 0}, {"large", &large, large}, {"none again", nil, 0}, {"huge", &huge, huge},
		{"none after that", nil, 0}, {"large again", &large, large}} {
		made, err := instance.Controller.Create(w.context(), backends.Spec{
			Name: test.name, Capacity: backends.CapacityRange{RequiredBytes: 16 << 20},
			Parameters: &local.Parameters{Pool: "image", ReadAheadKiB: test.class},
		})
		w.must(err)
		source, err := instance.Node.Source(w.context(), backends.Attachment{Handle: made.Handle, Type: backends.Mount})
		w.must(err)
		w.shelf.sources[made.Handle] = source
		request := w.stageRequest(made.Handle)
		w.stage(request)
		got, want := w.readAhead(request.StagingPath), test.want
		if test.class == nil {
			fallback = cmp.Or(fallback, got)
			want = fallback
		}
		if got != want || want == 0 {
			t.Errorf("%s: the read-ahead is %d KiB, want %d", test.name, got, want)
		}
		w.unstage(request)
	}
}

// With the mount option discard a volume gives back deleted space at once, and without it does not.
func TestDiscardOption(t *testing.T) {
	for _, options := range [][]string{{"discard"}, nil} {
		w := newWorld(t)
		image := w.image("v", 32)
		request := w.stageRequest("v")
		request.MountOptions = options
		w.stage(request)
		before := w.space(image)
		w.writeAndDelete(request.StagingPath)
		small := func() bool { return w.space(image) < before+deleted/2 }
		if options == nil && small() || options != nil && !eventually(small) {
			t.Errorf("with options %v the image takes %d bytes, and %d before %d were written and deleted", options,
				w.space(image), before, deleted)
		}
		w.unstage(request)
		w.wantNothingLeft()
	}
}
