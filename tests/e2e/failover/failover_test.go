package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/tests/cloud/region"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/machine"
)

const (
	driver = "ebs.csi.stowage.dev"
	// lost is the node that loses its power, and kept is the node that remains.
	lost, kept = "node-2", "node-1"
	lag        = 5 * time.Second // --failover-lag in deployed/kustomization.yaml
)

// TestFailover cuts a node's power. While the cloud says that the machine runs, nothing is forced. Once it says that
// the machine is stopped, the pod runs on the other node with its data. When the machine is back, the node returns to
// service. Then the node is drained, and put out of service while it works. It loses its power again, and the cloud
// reports it at once. In the end its Node is deleted first.
func TestFailover(t *testing.T) {
	s := newScene(t)
	defer s.failed()
	s.startup()
	s.begin()
	switch {
	case *partition:
		s.partitioned()
		return
	case *partitions > 0:
		s.partitionedOften(*partitions)
		return
	case *drift:
		s.drifted()
		return
	}
	if *without > 0 {
		s.dismissManager()
		s.kubectl("rollout", "status", "deployment/stowage-ebs-controller", "--namespace=stowage-system", "--timeout=4m")
	}
	s.cutPower()
	s.eventually("the node is not Ready", patience, func(ctx context.Context) error {
		if node := s.node(ctx); ready(node) {
			return errors.New("it is Ready")
		}
		return nil
	})
	if *without > 0 {
		s.measureWithout()
		return
	}
	s.event("NotProvenOff")
	s.nothingForced()
	proof := s.stop()
	s.outOfService(proof)
	s.elsewhere(patience, proof, "lives 2")
	s.back("lives 2")
	s.drained()
	s.held()
	s.atOnce()
	s.back("lives 8")
	s.nodeDeleted()
	s.neverTwice()
}

// atOnce cuts the power of a machine that the manager has seen running. The cloud reports it at the same instant.
func (s *scene) atOnce() {
	s.move("lives 7")
	<-time.After(lag + 15*time.Second) // The manager cannot know earlier that the cloud's answer is not stale.
	s.cutPower()
	proof := s.stop()
	s.outOfService(proof)
	s.elsewhere(patience, proof, "lives 8")
}

func (s *scene) outOfService(proof time.Time) {
	s.eventually("the node is out of service", patience, func(ctx context.Context) error {
		if !tainted(s.node(ctx)) {
			return errors.New("it has no taint")
		}
		return nil
	})
	s.passed("the node is out of service", proof)
}

// begin starts the pod on the node that will be lost. Meanwhile the manager has time to see its machine running.
func (s *scene) begin() {
	s.kubectl("cordon", kept)
	s.kubectl("apply", "--filename", "workload.yaml")
	s.kubectl("wait", "pod/web-0", "--for=create", "--timeout=1m")
	s.eventually("the pod runs", patience, func(context.Context) error { return s.says(lost, "lives 1") })
	s.kubectl("uncordon", kept)
}

// says checks where the pod runs, and its report about its data.
func (s *scene) says(node, want string) error {
	pod, err := s.Client.CoreV1().Pods("default").Get(s.Context(), "web-0", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod.Spec.NodeName != node || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("the pod is %s on %q, not on %s", pod.Status.Phase, pod.Spec.NodeName, node)
	}
	out, err := s.Kubectl(s.Context(), "logs", "web-0")
	if err == nil && !strings.HasSuffix(out, want) {
		err = fmt.Errorf("the pod says %q, not %q", out, want)
	}
	return err
}

func (s *scene) cutPower() {
	s.must(s.StopNode(s.Context(), lost))
	s.died = time.Now()
}

// stop makes the cloud report that the machine is off.
func (s *scene) stop() time.Time {
	s.cloud.Server.SetPower(region.NodeB, "stopped")
	s.passed("the cloud says that the machine is stopped", s.died)
	return time.Now()
}

// nothingForced checks that nothing is forced for a lost node whose machine is not known to be off.
func (s *scene) nothingForced() {
	if tainted(s.node(s.Context())) {
		s.Error("the node is out of service, and the cloud says that its machine runs")
	}
	if on := s.attached(); !slices.Equal(on, []string{region.NodeB}) {
		s.Errorf("the volume is attached to %q, not to the machine of the node that is lost", on)
	}
}

// attached returns the machines that a volume of the pod is attached to.
func (s *scene) attached() (on []string) {
	for _, v := range s.cloud.Server.Volumes() {
		for instance := range v.Instances {
			on = append(on, instance)
		}
	}
	return on
}

// elsewhere waits until the pod runs on the remaining node with its data.
func (s *scene) elsewhere(limit time.Duration, proof time.Time, lives string) {
	s.eventually("the volume is detached", limit, func(context.Context) error {
		if on := s.attached(); slices.Contains(on, region.NodeB) {
			return fmt.Errorf("it is attached to %q", on)
		}
		return nil
	})
	s.passed("the volume is detached", proof)
	s.eventually("the pod runs elsewhere", limit,
		func(context.Context) error { return s.says(kept, "/data/file: OK\n"+lives) })
	s.passed("the pod runs elsewhere with its data", proof)
}

// neverTwice checks the whole history: no volume was ever attached to two machines.
func (s *scene) neverTwice() {
	states := s.cloud.Server.Past()
	for _, state := range states {
		if len(state.Nodes) > 1 {
			s.Errorf("at %s volume %s was attached to %v", state.At, state.Volume, state.Nodes)
		}
	}
	s.Logf("%d states of volumes, none attached to two machines", len(states))
}

// back turns the node's power on again, and leaves the pod where it is.
func (s *scene) back(lives string) {
	s.cloud.Server.SetPower(region.NodeB, "running")
	s.must(s.StartNode(lost))
	on := time.Now()
	s.eventually("the node is in service again", patience, func(ctx context.Context) error {
		if node := s.node(ctx); tainted(node) || !ready(node) {
			return errors.New("it is not Ready, or out of service")
		}
		return nil
	})
	s.passed("the node is in service again", on)
	s.event("InService")
	s.must(s.says(kept, "/data/file: OK\n"+lives))
}

// dismissManager removes the manager, and configures the driver not to ask it.
func (s *scene) dismissManager() {
	deployments := s.Client.AppsV1().Deployments("stowage-system")
	d, err := deployments.Get(s.Context(), "stowage-ebs-controller", metav1.GetOptions{})
	s.must(err)
	pod := &d.Spec.Template.Spec
	pod.Containers = slices.DeleteFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == "manager" })
	serving := &pod.Containers[0]
	serving.Args = slices.DeleteFunc(serving.Args, func(arg string) bool { return strings.HasPrefix(arg, "--holds=") })
	_, err = deployments.Update(s.Context(), d, metav1.UpdateOptions{})
	s.must(err)
}

// measureWithout waits for the failover that Kubernetes does by itself.
func (s *scene) measureWithout() {
	s.stop()
	err := machine.Until(s.limited(*without), "the pod runs elsewhere",
		func(context.Context) error { return s.says(kept, "lives 2") })
	s.passed(fmt.Sprintf("without failover: %v", err), s.died)
}

func (s *scene) node(ctx context.Context) *corev1.Node {
	node, err := s.Client.CoreV1().Nodes().Get(ctx, lost, metav1.GetOptions{})
	s.must(err)
	return node
}

func ready(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func tainted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService && t.Value == driver })
}

// event waits until the node has an event with the reason.
func (s *scene) event(reason string) {
	s.Helper()
	s.eventOf(lost, reason)
}

func (s *scene) eventOf(node, reason string) {
	s.Helper()
	s.eventually("the event "+reason, patience, func(ctx context.Context) error {
		list, err := s.Client.CoreV1().Events("default").List(ctx,
			metav1.ListOptions{FieldSelector: "involvedObject.name=" + node + ",reason=" + reason})
		if err == nil && len(list.Items) == 0 {
			err = errors.New("there is none")
		}
		if err == nil {
			s.Logf("%s: %s", reason, list.Items[0].Message)
		}
		return err
	})
}

func (s *scene) limited(limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	s.Cleanup(cancel)
	return ctx
}

func (s *scene) eventually(what string, limit time.Duration, check func(context.Context) error) {
	s.Helper()
	s.must(machine.Until(s.limited(limit), what, check))
}

// passed logs the time since an event.
func (s *scene) passed(what string, since time.Time) {
	s.Logf("%-45s %5.1f s, %5.1f s after the node was lost", what, time.Since(since).Seconds(),
		time.Since(s.died).Seconds())
}

// failed explains a failure.
func (s *scene) failed() {
	if s.Failed() {
		s.explain()
	}
}
