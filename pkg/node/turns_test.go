package node_test

import (
	"context"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// A stage that has to make a filesystem waits while as many as allowed are being made, no longer than its
// request lasts; one that has nothing to make does not wait.
func TestFormatsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.formats = 1
	w.restart()
	w.image("slow", 16)
	w.image("blank", 16)
	w.image("made", 16)
	w.directory("directory")
	slow, blank, made := w.stageRequest("slow"), w.stageRequest("blank"), w.stageRequest("made")
	w.stage(made)
	w.unstage(made)

	begun, goOn := waiting(w)
	done := make(chan error, 1)
	go func() { done <- w.service.Stage(w.context(), slow) }()
	begun()
	ctx, cancel := context.WithTimeout(w.context(), 2*time.Second)
	defer cancel()
	w.want(w.service.Stage(ctx, blank), backends.Busy, "1 others are being formatted or checked")
	w.stage(made)
	w.stage(w.stageRequest("directory"))
	w.must(unix.Unmount(mkfsPath(w, "ext4"), unix.MNT_DETACH)) // the blank one waits still, and is made when its turn comes
	goOn()
	w.must(<-done)
	w.stage(blank)
	for _, volume := range []string{"slow", "blank", "made", "directory"} {
		w.unstage(w.stageRequest(volume))
	}
	w.wantNothingLeft()
}

// waiting puts a program in the place of mkfs.ext4 that does its work once it is told to go on.
func waiting(w *world) (begun, goOn func()) {
	w.Helper()
	text, err := os.ReadFile(mkfsPath(w, "ext4"))
	w.must(err)
	tool, script, up, down := w.path("mkfs.ext4"), w.path("waiting"), w.path("up"), w.path("down")
	w.must(unix.Mkfifo(up, 0o600))
	w.must(unix.Mkfifo(down, 0o600))
	w.must(os.WriteFile(tool, text, 0o700))
	w.must(os.WriteFile(script, []byte("#!/bin/sh\necho > "+up+"\nread line < "+down+"\nexec "+tool+" \"$@\"\n"), 0o700))
	w.bind(script, mkfsPath(w, "ext4"))
	w.Cleanup(func() { _ = unix.Unmount(mkfsPath(w, "ext4"), unix.MNT_DETACH) }) // the test has done so unless it failed
	return func() {
			_, err := os.ReadFile(up)
			w.must(err)
		}, func() {
			w.must(os.WriteFile(down, []byte("go on\n"), 0o600))
		}
}
