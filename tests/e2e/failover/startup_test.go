package failover

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const startupTaint = driver + "/agent-not-ready"

// startup gives one node the taint of new nodes while its driver serves, and the other node while its driver is away.
// The first taint is removed at once, the second when the driver is back.
func (s *scene) startup() {
	s.kubectl("taint", "node", kept, startupTaint+"=:NoSchedule")
	s.eventually("the startup taint is gone", patience, func(ctx context.Context) error { return s.admitted(ctx, kept) })
	s.eventOf(kept, "DriverRegistered")

	drivers := []string{"patch", "daemonset", "stowage-ebs-node", "--namespace=stowage-system", "--type=merge", "--patch"}
	s.kubectl(append(drivers, `{"spec":{"template":{"spec":{"nodeSelector":{"no":"where"}}}}}`)...)
	s.eventually("the driver is not registered", patience, func(ctx context.Context) error {
		if s.registered(ctx, lost) {
			return errors.New("it is")
		}
		return nil
	})
	s.kubectl("taint", "node", lost, startupTaint+"=:NoSchedule")
	// Stimulus: a faulty manager removes the taint within this time; a correct one never does.
	<-time.After(5 * time.Second)
	if s.admitted(s.Context(), lost) == nil {
		s.Error("the startup taint went while the driver was away")
	}
	s.kubectl(append(drivers, `{"spec":{"template":{"spec":{"nodeSelector":{"no":null}}}}}`)...)
	s.eventually("the startup taint is gone", patience, func(ctx context.Context) error { return s.admitted(ctx, lost) })
	if !s.registered(s.Context(), lost) {
		s.Error("the startup taint went before the driver was back")
	}
	s.kubectl("rollout", "status", "daemonset/stowage-ebs-node", "--namespace=stowage-system", "--timeout=4m")
}

func (s *scene) admitted(ctx context.Context, name string) error {
	node, err := s.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err == nil && slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == startupTaint }) {
		err = errors.New("it is there")
	}
	return err
}

func (s *scene) registered(ctx context.Context, name string) bool {
	node, err := s.Client.StorageV1().CSINodes().Get(ctx, name, metav1.GetOptions{})
	s.must(err)
	for _, d := range node.Spec.Drivers {
		if d.Name == driver {
			return true
		}
	}
	return false
}
