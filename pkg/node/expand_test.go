package node_test

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
)

// The kubelet treats NOT_FOUND as infeasible, and never retries. So Expand, unlike Stats, does not return it for a
// recorded volume that does not show for a moment, but only for a path that is not recorded.
func TestExpandOfWhatDoesNotShow(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	expand := func(path string) error {
		_, err := w.service.Expand(w.context(), node.ExpandRequest{Volume: "v", Path: path})
		return err
	}
	w.want(expand(publishing.TargetPath), backends.NotFound, "neither staged nor published")
	w.stage(staging)
	w.want(expand(publishing.TargetPath), backends.NotFound, "neither staged nor published", publishing.TargetPath)
	w.publish(publishing)
	w.must(expand(publishing.TargetPath))
	w.detach(publishing.TargetPath)
	w.want(expand(publishing.TargetPath), backends.Unavailable, "any more", publishing.TargetPath)
	_, err := w.service.Stats(w.context(), "v", publishing.TargetPath)
	w.want(err, backends.NotFound)
	w.publish(publishing)
	w.must(expand(publishing.TargetPath))
	w.unpublish(publishing)
	w.unstage(staging)
	w.want(expand(publishing.TargetPath), backends.NotFound)
	w.wantNothingLeft()
}
