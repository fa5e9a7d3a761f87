package node_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// waitsForItsTurn reports whether a tool waits for its turn on one of the world's devices.
func (w *world) waitsForItsTurn() bool {
	return slices.ContainsFunc(w.loops(), func(loop string) bool {
		return strings.Contains(w.service.Progress(strings.Fields(loop)[0]), "it waits for its turn")
	})
}

// A stage that has to create a filesystem waits while the maximum number is being created, but not longer than its
// request. A stage that has nothing to create does not wait.
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

	tool := newSlowTool(w, "mkfs.ext4")
	done := make(chan error, 1)
	go func() { done <- w.service.Stage(w.context(), slow) }()
	if !eventually(tool.begun) {
		t.Fatal("the tool was not started")
	}
	stage := func(ctx context.Context) error { return w.service.Stage(ctx, blank) }
	w.want(w.until(w.waitsForItsTurn, stage), backends.Busy, "1 others are being formatted or checked")
	w.stage(made)
	w.stage(w.stageRequest("directory"))
	tool.goOn() // the blank one still waits, and is formatted in its turn
	w.must(<-done)
	w.stage(blank)
	for _, volume := range []string{"slow", "blank", "made", "directory"} {
		w.unstage(w.stageRequest(volume))
	}
	w.wantNothingLeft()
}
