package failover

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// held puts a working node out of service, as a person may do by mistake, while its kubelet cannot unmount the volume.
// Kubernetes detaches the volume at once; the driver waits for the kubelet.
func (s *scene) held() {
	s.move("lives 5")
	letGo := s.keepBusy()
	s.kubectl("taint", "node", lost, "node.kubernetes.io/out-of-service=person:NoExecute")
	s.refused("reports it in use")
	// Stimulus: a driver that detaches all the same does so within this time.
	<-time.After(20 * time.Second)
	if on := s.attached(); !slices.Equal(on, []string{region.NodeB}) {
		s.Errorf("the volume is attached to %q, and the kubelet of %s uses it", on, lost)
	}
	begin := time.Now()
	letGo()
	s.eventually("the pod runs elsewhere", 2*patience, // Every component has retried with growing delays.
		func(context.Context) error { return s.says(kept, "/data/file: OK\nlives 6") })
	s.passed("the pod runs elsewhere after the kubelet let go", begin)
	s.kubectl("taint", "node", lost, "node.kubernetes.io/out-of-service-")
}

// keepBusy keeps a process of the node in the volume, so that it cannot be unmounted, until letGo is called.
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
		_ = cmd.Wait() // It ends when its input ends.
	}
}
