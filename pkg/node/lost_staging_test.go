package node_test

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// The record is lost and the staging path is empty, and a target still shows the volume. Once the volume is staged
// again, it counts as published there: no second target gets it, and the first one can be published again.
func TestStagedAgainWithoutARecord(t *testing.T) {
	for _, form := range publishedForms() {
		if !form.known || form.name == "export" { // nothing then says what shows
			continue
		}
		t.Run(form.name+", "+string(form.kind), func(t *testing.T) {
			w := newWorld(t)
			disk := form.make(w)
			staging, first := w.stageRequest("v"), w.publishRequest("v")
			staging.Use = node.Use{Type: form.kind, Mode: backends.SingleNodeWriter}
			first.Use = staging.Use
			second := first
			second.TargetPath += "-2"
			w.stage(staging)
			w.publish(first)
			w.detach(w.placeOf(staging))
			w.amnesia()
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
			w.unstage(staging)
			if disk != "" {
				w.must(device.Detach(w.context(), disk, patience))
			}
			w.wantNothingLeft()
		})
	}
}
