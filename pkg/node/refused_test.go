package node_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
)

// TestRefusedStagingGivesBack has stagings refused before anything is created. After a final refusal nobody unstages
// the volume. So it must not be in use then, unless it was before.
func TestRefusedStagingGivesBack(t *testing.T) {
	w := newWorld(t)
	for name, put := range map[string]func(string){"directory": w.directory, "export": w.export,
		"image": func(name string) { w.image(name, 64) }} {
		t.Run(name, func(t *testing.T) {
			within := *w
			within.TB = t
			w := &within
			put(name)
			request := w.stageRequest(name)
			for refusal, change := range map[string]func(r *node.StageRequest){
				"a filesystem":  func(r *node.StageRequest) { r.Use.FSType = "ntfs" },
				"a place":       func(r *node.StageRequest) { r.StagingPath = w.path("nowhere") },
				"a mount there": func(r *node.StageRequest) { r.StagingPath = w.mkdir(w.path("taken")); w.stack(r.StagingPath) },
			} {
				refused := request
				change(&refused)
				w.isRefused(refusal, refused, false)
			}
			w.stage(request)
			elsewhere := request
			elsewhere.StagingPath = w.mkdir(w.path("elsewhere"))
			w.isRefused("a second place", elsewhere, true)
			w.unstage(request)
		})
	}
}

// isRefused checks that a request for staging is refused, and whether the volume is in use afterwards.
func (w *world) isRefused(refusal string, request node.StageRequest, used bool) {
	w.Helper()
	err := w.service.Stage(w.context(), request)
	if final := []backends.Kind{backends.Invalid, backends.Exists, backends.Unsupported}; !slices.Contains(final,
		backends.KindOf(err)) {
		w.Errorf("%s: got %v, want a refusal", refusal, err)
	}
	if have := w.shelf.Used(w.context(), request.Volume); have != used {
		w.Errorf("%s: after %v it is in use: %t, want %t", refusal, err, have, used)
	}
}

// TestRefusedStagingThatCannotGiveBack has the backend fail meanwhile. Then the refusal is not final, so that the
// orchestrator unstages the volume.
func TestRefusedStagingThatCannotGiveBack(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	w.shelf.stuck = errors.New("the disk is gone")
	request := w.stageRequest("v")
	request.Use.FSType = "ntfs"
	w.want(w.service.Stage(w.context(), request), backends.Unavailable, "ntfs", "the disk is gone")
	w.shelf.stuck = nil
	// This call did not begin the use, and must not end it. So it is not final either.
	w.want(w.service.Stage(w.context(), request), backends.Unavailable, "ntfs", "in use")
	w.unstage(request)
	if w.shelf.Used(w.context(), "v") {
		t.Error("it is in use after it was unstaged")
	}
}
