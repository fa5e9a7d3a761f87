package failover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// forced is longer than Kubernetes takes to detach by force from a node that is not Ready: six minutes after it is sure
// that no pod there wants the volume.
const forced = 8 * time.Minute

// partitioned cuts a node off the network. Its pod continues to write. A person who believes that the node is dead
// deletes the pod by force. Nothing is detached, even after Kubernetes has waited long enough. When the network is
// back, the kubelet unmounts the volume, and the pod runs elsewhere with its data.
func (s *scene) partitioned() {
	s.must(s.CutNode(s.Context(), lost))
	s.died = time.Now()
	s.kubectl("cordon", lost) // The node is still Ready for a while.
	s.kubectl("delete", "pod", "web-0", "--force", "--grace-period=0")
	refused := ""
	for time.Since(s.died) < forced {
		// Stimulus: Kubernetes continues to wait, and then detaches.
		<-time.After(time.Second)
		if on := s.attached(); !slices.Equal(on, []string{region.NodeB}) {
			s.Fatalf("VIOLATION: after %v the volume is attached to %q, and the node that was cut off writes to it",
				time.Since(s.died), on)
		}
		if tainted(s.node(s.Context())) {
			s.Fatalf("VIOLATION: after %v the node is out of service, and its machine runs", time.Since(s.died))
		}
		if now := s.refusal(s.Context()); now != refused {
			s.passed("refused: "+now, s.died)
			refused = now
		}
	}
	if !strings.Contains(refused, "is silent: its machine runs and may write to them") {
		s.Errorf("Kubernetes was to detach by force within %v, and the last refusal is %q", forced, refused)
	}
	s.must(s.MendNode(s.Context(), lost))
	mended := time.Now()
	s.eventually("the pod runs elsewhere", patience,
		func(context.Context) error { return s.says(kept, "/data/file: OK\nlives 2") })
	s.passed("the pod runs elsewhere after the network was back", mended)
	s.neverTwice()
}

// refusal returns the reason for which a volume was not detached.
func (s *scene) refusal(ctx context.Context) string {
	list, err := s.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	s.must(err)
	for _, a := range list.Items {
		if a.Status.DetachError != nil {
			return a.Status.DetachError.Message
		}
	}
	return ""
}

// refused waits until a detachment is refused for a reason.
func (s *scene) refused(why string) {
	s.eventually("the detachment is refused", patience, func(ctx context.Context) error {
		if says := s.refusal(ctx); !strings.Contains(says, why) {
			return errors.New("the VolumeAttachments say " + says)
		}
		return nil
	})
}
