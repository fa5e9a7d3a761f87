package failover

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// held puts a node that works out of service, as a person does by mistake, while its kubelet cannot unmount the volume.
// Kubernetes has it detached at once; the driver waits for the kubelet.
func (s *scene) held() {
	s.move("lives 5")
	letGo := s.keepBusy()
	s.kubectl("taint", "node", lost, "node.kubernetes.io/out-of-service=person:NoExecute")
	s.refused("reports it in use")
	// Stimulus: whoever detaches all the same does so within this time.
	<-time.After(20 * time.Second)
	if on := s.attached(); !slices.Equal(on, []string{region.NodeB}) {
		s.Errorf("the volume is attached to %q, and the kubelet of %s uses it", on, lost)
	}
	begin := time.Now()
	letGo()
	s.eventually("the pod runs elsewhere", 2*patience, // Everybody asks ever more seldom meanwhile.
		func(context.Context) error { return s.says(kept, "/data/file: OK\nlives 6") })
	s.passed("the pod runs elsewhere after the kubelet let go", begin)
	s.kubectl("taint", "node", lost, "node.kubernetes.io/out-of-service-")
}

// keepBusy has a process on the node work in the volume, so that it cannot be unmounted, until it is told to end.
func (s *scene) keepBusy() (letGo func()) {
	cmd, err := s.NodeCommand(s.Context(), lost, "sh", "-c",
		fmt.Sprintf("cd /var/lib/kubelet/plugins/kubernetes.io/csi/%s/*/globalmount && echo in && read end", driver))
	s.must(err)
	in, err := cmd.StdinPipe()
	s.must(err)
	out, err := cmd.StdoutPipe()
	s.must(err)
	s.must(cmd.Start())
	if said, err := io.ReadAll(io.LimitReader(out, 2)); err != nil || string(said) != "in" {
		s.Fatalf("no process works in the volume: %q, %v", said, err)
	}
	return func() {
		_ = in.Close()
		_ = cmd.Wait() // It ends for want of a line to read.
	}
}
