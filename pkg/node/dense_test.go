package node_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/stall"
)

// denseMiB is how many MiB of zeros a dense image holds: more than a call reads.
const denseMiB = 200

// deep is where a dense image has data, beyond all its other contents. No sample covers the place.
const deep = 3379<<20 + 12345*512

// fillDense writes zeros to the start of an image and, if asked, data far behind them.
func (w *world) fillDense(image string, data bool) {
	w.Helper()
	file, err := os.OpenFile(image, os.O_WRONLY, 0)
	w.must(err)
	defer file.Close()
	zeros := make([]byte, 1<<20)
	for i := range int64(denseMiB) {
		_, err := file.WriteAt(zeros, i<<20)
		w.must(err)
	}
	if data {
		_, err := file.WriteAt([]byte("data"), deep)
		w.must(err)
	}
}

// progressOn returns the progress of the work on an image.
func (w *world) progressOn(image string) string {
	w.Helper()
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	w.must(err)
	for _, file := range files {
		if text, _ := os.ReadFile(file); strings.TrimSpace(string(text)) == image {
			return w.service.Progress("/dev/" + strings.Split(file, "/")[3])
		}
	}
	return ""
}

// Everything that an image holds is read before it is formatted, however much that is, and whoever created it.
func TestDenseImage(t *testing.T) {
	for _, data := range []bool{true, false} {
		for _, trust := range []bool{true, false} {
			t.Run(fmt.Sprintf("data %t, samples do %t", data, trust), func(t *testing.T) {
				w := newWorld(t)
				w.fillDense(w.image("v", 4096), data)
				request := w.stageRequest("v")
				request.TrustSamples = trust
				if err := w.service.Stage(w.context(), request); data {
					w.want(err, backends.Invalid, fmt.Sprintf("data at byte %d", int64(deep)),
						"if nothing on it is needed, delete the volume")
				} else {
					w.must(err)
				}
				w.unstage(request)
				w.wantNothingLeft()
			})
		}
	}
}

// Reading an image's contents continues after the call, and the next call waits for it. The result of the read is
// reported, and is not replaced by the end of a call's time.
func TestReadingOutlivesItsCall(t *testing.T) {
	server := stall.Serve(t)
	w := newServedWorld(t)
	w.formats, w.hasty = 1, false
	w.restart()
	w.image("slow", 16)
	image := filepath.Join(server.Real, "dense")
	w.must(os.WriteFile(image, nil, 0o600))
	w.must(os.Truncate(image, 4096<<20))
	w.fillDense(image, true)
	w.shelf.sources["v"] = backends.Device{Path: filepath.Join(server.Dir, "dense"), Image: true}
	request := w.stageRequest("v")
	request.TrustSamples = true
	stage := func(ctx context.Context) error { return w.service.Stage(ctx, request) }

	tool, done := newSlowTool(w, "mkfs.ext4"), make(chan error, 1)
	go func() { done <- w.service.Stage(w.context(), w.stageRequest("slow")) }()
	if !eventually(tool.begun) {
		t.Fatal("the tool was not started")
	}
	waits := func() bool {
		return strings.Contains(w.progressOn(filepath.Join(server.Dir, "dense")), "it waits for its turn")
	}
	w.want(w.until(waits, stage), backends.Busy)
	server.Stop(t)
	tool.goOn()
	w.must(<-done)
	for range 3 {
		w.want(w.brief(stage), backends.Busy, "making the ext4 on", "goes on in the background")
		w.want(w.service.Publish(w.context(), w.publishRequest("v")), backends.InUse)
	}
	server.Continue(t)
	w.want(w.service.Stage(w.context(), request), backends.Invalid, fmt.Sprintf("data at byte %d", int64(deep)))
	w.unstage(request)
	w.unstage(w.stageRequest("slow"))
	w.wantNothingLeft()
}
