package node_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/stall"
)

// The outcome of a background walk is stale once a pod has used the volume: the next pod of that group also gets the
// files that were created meanwhile.
func TestOutcomeOfAWalkEndsWithPublishing(t *testing.T) {
	server := stall.Serve(t)
	w := newServedWorld(t)
	w.groups, w.hasty = true, false // only the walk hangs
	seen := &walks{}
	w.observer = seen
	w.restart()
	volume := filepath.Join(server.Real, "v")
	w.must(os.Mkdir(volume, 0o755))
	w.shelf.sources["v"] = backends.Directory{Path: filepath.Join(server.Dir, "v")}
	for i := range 200 {
		w.write(filepath.Join(volume, fmt.Sprint(i)), "data")
	}
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	w.stage(staging)
	publishing.MountGroup = "4711"

	server.StopAt(t, stall.Lookup, 100)
	publish := func(ctx context.Context) error { return w.service.Publish(ctx, publishing) }
	err := w.until(func() bool { return server.Stopped(t) }, publish)
	w.want(err, backends.Busy, "giving the files", "4711", "goes on in the background")
	server.Continue(t)

	other := publishing
	other.MountGroup = ""
	w.publish(other) // it waits for the walk, and does not ask for its outcome
	w.write(filepath.Join(volume, "new"), "data")
	w.must(os.Chown(filepath.Join(volume, "new"), 0, 99))
	w.unpublish(other)
	w.publish(publishing)
	if got := w.groupOf(filepath.Join(staging.StagingPath, "new")); got != 4711 || seen.began.Load() != 2 {
		t.Errorf("after %d walks the new file belongs to group %d, want 4711 after 2", seen.began.Load(), got)
	}
	w.unpublish(publishing)
	w.unstage(staging)
	w.wantNothingLeft()
}
