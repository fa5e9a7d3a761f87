package node_test

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// The outcome of a check is stale once its volume was taken down: it may have been used elsewhere since.
func TestOutcomeOfACheckEndsWithTakingDown(t *testing.T) {
	w := newWorld(t)
	image := w.image("v", 16)
	staging := w.stageRequest("v")
	lastingCases()["check"].prepare(w, staging, image)
	tool := newSlowTool(w, "e2fsck")
	w.want(tool.impatient(staging), backends.Busy, "checking the ext4")
	tool.goOn()

	refused := staging
	refused.MountOptions = []string{"journal_dev=1"}
	if err := w.service.Stage(w.context(), refused); err == nil || backends.Is(err, backends.Busy) {
		t.Fatalf("staged with an option that the kernel refuses: %v", err)
	}
	w.wantNothingLeft()
	if out, err := exec.CommandContext(w.context(), "debugfs", "-w", "-R", "set_super_value state 2",
		image).CombinedOutput(); err != nil {
		t.Fatalf("debugfs: %v\n%s", err, out)
	}
	script := w.path("false")
	w.write(script, "#!/bin/sh\nexit 8\n")
	w.must(unix.Chmod(script, 0o700))
	w.bind(script, tool.path)
	t.Cleanup(func() { _ = unix.Unmount(tool.path, unix.MNT_DETACH) })
	w.want(w.service.Stage(w.context(), staging), backends.Unavailable, "the check of")
}
