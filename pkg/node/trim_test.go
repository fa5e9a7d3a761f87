package node_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/params"
)

// clock is a clock that a test sets.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

// pass lets time pass and trims the volumes that are then due, as the next tick would.
func (w *world) pass(d time.Duration) {
	w.Helper()
	w.clock.now = w.clock.now.Add(d)
	w.service.TrimDue(w.context(), w.clock.now)
}

// space returns how many bytes an image takes on its disk.
func (w *world) space(image string) int64 {
	w.Helper()
	var stat unix.Stat_t
	w.must(unix.Stat(image, &stat))
	return stat.Blocks * 512
}

// writeAndDelete writes a large file to a volume and deletes it.
func (w *world) writeAndDelete(path string) {
	w.Helper()
	root, err := os.Open(path)
	w.must(err)
	defer root.Close()
	w.must(os.WriteFile(filepath.Join(path, "large"), bytes.Repeat([]byte("data"), 2<<20), 0o600))
	w.must(unix.Syncfs(int(root.Fd())))
	w.must(os.Remove(filepath.Join(path, "large")))
	// An xfs frees blocks in the background, and does not trim those whose freeing is not on disk yet. A freeze waits for
	// both.
	const freeze, thaw = 0xc0045877, 0xc0045878 // FIFREEZE, FITHAW
	w.must(unix.Syncfs(int(root.Fd())))
	w.must(unix.IoctlSetInt(int(root.Fd()), freeze, 0))
	w.must(unix.IoctlSetInt(int(root.Fd()), thaw, 0))
}

const (
	day     = 24 * time.Hour
	deleted = 8 << 20 // bytes that writeAndDelete writes
)

// trimmed reports whether an image has given back its deleted space. The kernel also writes for itself, before and
// after, so a small difference means nothing.
func (w *world) trimmed(image string, before int64) bool {
	w.Helper()
	return w.space(image) < before-deleted/2
}

// A volume whose class asks for it gives back deleted space once the interval has passed, repeatedly, even after a
// restart of the driver. A volume whose class does not ask keeps it.
func TestTrim(t *testing.T) {
	for _, form := range forms()[:3] {
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t)
			w.clock = &clock{now: time.Now()}
			w.restart()
			form.make(w, "v")
			form.make(w, "other")
			image, other := w.path("images", "v"), w.path("images", "other")
			request, unasked := w.stageRequest("v"), w.stageRequest("other")
			request.Use.FSType, unasked.Use.FSType = form.fsType, form.fsType
			request.Settings.FSTrimInterval = params.Duration(day)
			w.stage(request)
			w.stage(unasked)
			w.pass(day) // the first trim is at its own time
			w.writeAndDelete(unasked.StagingPath)
			for round, restart := range []bool{false, true} {
				w.writeAndDelete(request.StagingPath)
				before := w.space(image)
				w.pass(day / 2)
				if w.trimmed(image, before) {
					t.Errorf("round %d: it was trimmed before it was due", round)
				}
				if restart {
					w.restart()
				}
				w.pass(day / 2)
				// The discards of an xfs are still under way when the kernel says that it is done.
				if !eventually(func() bool { return w.trimmed(image, before) }) {
					t.Errorf("round %d: the image takes %d bytes before and %d after: %d were deleted", round, before, w.space(image),
						deleted)
				}
			}
			if w.space(other) < deleted/2 {
				t.Error("a volume was trimmed whose class does not ask for it")
			}
			w.unstage(request)
			w.unstage(unasked)
			w.pass(2 * day)
			w.wantNothingLeft()
		})
	}
}

// A volume that is staged read-only or raw, or has no device, is never trimmed, and asking for it is no error.
func TestTrimWhatCannotBe(t *testing.T) {
	w := newWorld(t)
	w.clock = &clock{now: time.Now()}
	var log bytes.Buffer
	w.log = slog.New(slog.NewTextHandler(&log, nil))
	w.restart()
	image := w.unmounted("ext4")
	w.shelf.sources["reader"] = backends.Device{Path: image, Image: true}
	w.image("raw", 16)
	w.directory("directory")
	w.export("export")
	for _, name := range []string{"reader", "raw", "directory", "export"} {
		request := w.stageRequest(name)
		request.Settings.FSTrimInterval = params.Duration(day)
		switch name {
		case "reader":
			request.Use.Mode = backends.MultiNodeReaderOnly
		case "raw":
			request.Use.Type = backends.Block
		}
		w.stage(request)
	}
	before := checksum(t, image)
	w.pass(3 * day)
	if text := log.String(); strings.Contains(text, "trim") {
		t.Errorf("the log says %s", text)
	}
	for _, name := range []string{"reader", "raw", "directory", "export"} {
		w.unstage(w.stageRequest(name))
	}
	if checksum(t, image) != before {
		t.Error("a volume for reading was written to")
	}
	w.wantNothingLeft()
}

// Unstaging does not fail because of a trim: it stops the trim and waits for its end.
func TestUnstageWhileTrimming(t *testing.T) {
	w := newWorld(t)
	w.clock = &clock{now: time.Now()}
	w.restart()
	w.image("v", 20<<10) // many ranges, and groups that take some time
	request := w.stageRequest("v")
	request.Settings.FSTrimInterval = params.Duration(day)
	ctx, cancel := context.WithCancel(w.context())
	ticks, ended := make(chan time.Time), make(chan struct{})
	go func() {
		defer close(ended)
		w.service.RunTrims(ctx, ticks)
	}()
	for range 10 {
		w.stage(request)
		w.clock.now = w.clock.now.Add(2 * day)
		ticks <- w.clock.now
		w.unstage(request)
	}
	cancel()
	<-ended
	w.wantNothingLeft()
}

// A volume that is no longer on a schedule keeps its mark, which says when it was trimmed, because it may come back.
func TestTrimIsRememberedOverUnstage(t *testing.T) {
	w := newWorld(t)
	w.clock = &clock{now: time.Now()}
	w.restart()
	w.image("v", 32)
	request := w.stageRequest("v")
	request.Settings.FSTrimInterval = params.Duration(7 * day)
	w.stage(request)
	w.pass(7 * day)
	for hours := range 8 { // it is staged briefly each day
		w.writeAndDelete(request.StagingPath)
		before := w.space(w.path("images", "v"))
		w.unstage(request)
		w.clock.now = w.clock.now.Add(day)
		w.restart()
		w.stage(request)
		w.pass(0)
		if trimmed, due := w.trimmed(w.path("images", "v"), before), hours == 6; trimmed != due {
			t.Errorf("day %d: trimmed %t, want %t", hours+1, trimmed, due)
		}
	}
	w.unstage(request)
	w.wantNothingLeft()
}

// A volume whose record is read late is trimmed again, whatever call reads it.
func TestTrimAfterALateRecord(t *testing.T) {
	w := newWorld(t)
	w.clock = &clock{now: time.Now()}
	w.restart()
	image, request := w.image("v", 64), w.stageRequest("v")
	request.Settings.FSTrimInterval = params.Duration(day)
	w.stage(request)
	_, mend := w.hideRecord()
	mend()
	w.writeAndDelete(request.StagingPath)
	before := w.space(image)
	_ = w.service.InUse(w.context(), "v")
	w.pass(day)
	if !w.trimmed(image, before) {
		t.Errorf("the image takes %d bytes before and %d after", before, w.space(image))
	}
	w.unstage(request)
	w.wantNothingLeft()
}
