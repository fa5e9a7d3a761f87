package node_test

import (
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
)

// TestInUse checks that a volume is in use from its staging until it is unstaged, with its places, also if the record
// of the staging is lost.
func TestInUse(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	stage, publish := w.stageRequest("v"), w.publishRequest("v")
	check := func(after string, want ...string) {
		t.Helper()
		where := w.service.InUse(w.context(), "v")
		if len(want) == 0 && where != "" {
			t.Errorf("%s the volume is %s", after, where)
		}
		for _, one := range want {
			if !strings.Contains(where, one) {
				t.Errorf("%s the volume is %q, want %q", after, where, one)
			}
		}
	}
	check("at first")
	w.must(w.service.Stage(w.context(), stage))
	check("after Stage", "staged at "+stage.StagingPath)
	w.must(w.service.Publish(w.context(), publish))
	check("after Publish", "published at "+publish.TargetPath, "staged at "+stage.StagingPath)
	w.amnesia()
	check("without records", "the storage notes it as in use")
	w.must(w.service.Unpublish(w.context(), "v", publish.TargetPath))
	check("after Unpublish", "the storage notes it as in use")
	w.must(w.service.Unstage(w.context(), "v", stage.StagingPath))
	check("after Unstage")
}

// TestDeletionAfterAnInterruptedStaging checks that a staging that a kill interrupted keeps its volume from being
// deleted only as long as something of it is left.
func TestDeletionAfterAnInterruptedStaging(t *testing.T) {
	used := map[string]bool{
		"recorded, nothing done": false, "mounted, staging unfinished": true, "loop device kept": true,
		"attached, not bound": true, "attached, file made, not bound": true, "bound, staging unfinished": true,
	}
	for _, left := range leftovers() {
		isUsed, ok := used[left.name]
		if !ok {
			continue // It leaves no unfinished record.
		}
		kind := backends.Mount
		if left.block {
			kind = backends.Block
		}
		t.Run(string(kind)+", "+left.name, func(t *testing.T) {
			w := newWorld(t)
			image, staging := w.image("v", 16), w.stageRequest("v")
			staging.Use.Type = kind
			left.make(w, image, staging)
			w.isUsed(staging, isUsed)
			w.unstage(staging)
			w.isUsed(staging, false)
			w.wantNothingLeft()
		})
	}
}

// TestDeletionAfterAnInterruptedBind is the same for volumes without a device.
func TestDeletionAfterAnInterruptedBind(t *testing.T) {
	for name, source := range map[string]ledger.Source{
		"directory": {Kind: ledger.Directory, Path: "directories/v"},
		"export":    {Kind: ledger.Export, Path: "share-of-v", FSType: "tmpfs"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.export("v")
			if source.Kind == ledger.Directory {
				w.directory("v")
				source.Path = w.path(source.Path)
			}
			staging := w.stageRequest("v")
			w.intend(staging, source)
			w.isUsed(staging, false)
			w.stage(staging)
			w.intend(staging, source)
			w.isUsed(staging, true)
			w.unstage(staging)
			w.isUsed(staging, false)
			w.wantNothingLeft()
		})
	}
}

// isUsed checks whether a volume counts as in use at its staging path, so that it cannot be deleted.
func (w *world) isUsed(r node.StageRequest, want bool) {
	w.Helper()
	if where := w.service.InUse(w.context(), r.Volume); (where != "") != want {
		w.Errorf("it is in use: %t (%s), want %t", where != "", where, want)
	}
	err := w.service.CheckUnused(w.context(), r.Volume)
	if !want {
		w.must(err)
		return
	}
	w.want(err, backends.InUse, "staged at "+r.StagingPath)
}
