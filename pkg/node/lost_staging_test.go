package node_test

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
)

// The record is lost and the staging path is empty, and a target still shows the volume. Once the volume is staged
// again, it counts as published there: no second target gets it, and the first one can be published again.
func TestStagedAgainWithoutARecord(t *testing.T) {
	lostAfterUnmount(t, backends.SingleNodeWriter,
		func(w *world, staging node.StageRequest, first node.PublishRequest) {
			second := first
			second.TargetPath += "-2"
			for range 2 {
				w.stage(staging)
				w.want(w.service.Publish(w.context(), second), backends.InUse, first.TargetPath)
				w.restart()
			}
			w.publish(first)
			w.want(w.service.Unstage(w.context(), "v", staging.StagingPath), backends.InUse, first.TargetPath)
			w.unpublish(first)
			w.publish(second)
			w.unpublish(second)
		})
}
