package node_test

import (
	"strings"
	"testing"
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
