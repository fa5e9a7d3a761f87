package node_test

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// user starts a process, waits for its first line, and returns its process number and a function that ends it.
func (w *world) user(argv ...string) (pid int, end func()) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.context(), patience)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	in, err := cmd.StdinPipe()
	w.must(err)
	out, err := cmd.StdoutPipe()
	w.must(err)
	w.must(cmd.Start())
	end = func() {
		_ = in.Close()
		_ = cmd.Wait() // its exit status does not matter
		cancel()
	}
	w.Cleanup(end)
	_, err = bufio.NewReader(out).ReadString('\n')
	w.must(err)
	return cmd.Process.Pid, end
}

// The user of a volume is named, and once the user is gone the volume is free.
func TestWhoUsesAVolume(t *testing.T) {
	const wait = "echo ready; read line"
	private := []string{"unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", wait}
	sh := func(line, file string) func(string) []string {
		return func(place string) []string { return []string{"/bin/sh", "-c", line, filepath.Join(place, file)} }
	}
	for _, test := range []struct {
		name      string
		kind      backends.AccessType
		published bool
		begin     func(place string) []string
		says      string
	}{
		{"working at the target", backends.Mount, true, sh("cd \"$0\"; "+wait, ""), "works in"},
		{"reading at the target", backends.Mount, true, sh("exec 3<\"$0\"; "+wait, ""), "open"},
		{"working at the staging path", backends.Mount, false, sh("cd \"$0\"; "+wait, ""), "works in"},
		{"in another mount namespace", backends.Mount, false, func(string) []string { return private },
			"in another mount namespace"},
		{"reading the device", backends.Block, false, sh("exec 3<\"$0\"; "+wait, "device"), "open"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.service.SearchFor(patience)
			w.image("v", 16)
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			staging.Use.Type, publishing.Use.Type = test.kind, test.kind
			w.stage(staging)
			place, leave := staging.StagingPath, func() error { return w.service.Unstage(w.context(), "v", staging.StagingPath) }
			if test.published {
				w.publish(publishing)
				place, leave = publishing.TargetPath,
					func() error { return w.service.Unpublish(w.context(), "v", publishing.TargetPath) }
			}
			pid, end := w.user(test.begin(place)...)
			w.service.DetachWithin(briefly)
			w.want(leave(), backends.InUse, fmt.Sprintf("process %d", pid), test.says)
			w.service.DetachWithin(patience)
			end()
			w.must(leave())
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}
