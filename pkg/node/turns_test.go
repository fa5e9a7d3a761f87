package node_test

import (
	"context"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// A stage that has to make a filesystem waits while as many as allowed are being made, no longer than its
// request lasts; one that has nothing to make does not wait.
func TestFormatsAreBounded(t *testing.T) {
	w := newWorld(t)
	w.formats = 1
	w.restart()
	w.image("blank", 16)
	w.image("made", 16)
	w.directory("directory")
	blank, made := w.stageRequest("blank"), w.stageRequest("made")
	w.stage(made)
	w.unstage(made)

	release, err := w.service.TakeTurn(w.context())
	w.must(err)
	ctx, cancel := context.WithTimeout(w.context(), 100*time.Millisecond)
	defer cancel()
	w.want(w.service.Stage(ctx, blank), backends.Unavailable, "1 others are being formatted or checked")
	w.stage(made)
	w.stage(w.stageRequest("directory"))
	release()
	w.stage(blank)
	for _, request := range []string{"blank", "made", "directory"} {
		w.unstage(w.stageRequest(request))
	}
	w.wantNothingLeft()
}
