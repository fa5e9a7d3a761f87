package failover

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/machines"
)

func claims() []corev1.Volume {
	return []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"},
	}}}
}

// pod creates a pod on the node. The finalizers keep it.
func (s *scene) pod(name string, spec corev1.PodSpec, finalizers ...string) {
	s.Helper()
	spec.NodeName = "one"
	s.must(s.api.Create(s.Context(), &corev1.Pod{Spec: spec, ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "ns", UID: types.UID("uid of " + name), Finalizers: finalizers,
	}}))
}

// evict deletes pods, as Kubernetes does for a taint.
func (s *scene) evict(names ...string) {
	s.Helper()
	for _, name := range names {
		s.must(s.api.Delete(s.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}))
	}
}

func TestPodsThatTolerateEverything(t *testing.T) {
	s := newScene(t)
	all, later := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, int64(60)
	for name, spec := range map[string]corev1.PodSpec{
		"stays": {Volumes: claims(), Tolerations: all}, "claimless": {Tolerations: all}, "goes": {Volumes: claims()},
		"goes-later": {Volumes: claims(),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, TolerationSeconds: &later}}},
	} {
		s.pod(name, spec)
	}
	s.lives(90 * time.Second)
	s.state = machines.Stopped
	s.passes(20 * time.Second)
	s.wantEvent("PodsStay", "stay attached: ns/stays. Delete")
}

// TestEvictedPodsAreDeleted checks that the pods with volumes are deleted as soon as they are evicted, each once, and
// only while the machine is proven to be off.
func TestEvictedPodsAreDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		before func(s *scene) // runs when the node is out of service
		want   []string
	}{
		"off":                   {func(*scene) {}, []string{"first", "second"}},
		"the provider is away":  {func(s *scene) { s.trouble = errors.New("no answer") }, nil},
		"it is started again":   {func(s *scene) { s.state, s.began = machines.Running, time.Unix(2000, 0) }, nil},
		"the kubelet is back":   {func(s *scene) { s.renew() }, nil},
		"the Node is another's": {func(s *scene) { s.change(func(n *corev1.Node) { n.Status.NodeInfo.BootID = "b" }) }, nil},
		"the taint is taken away": {func(s *scene) {
			s.change(func(n *corev1.Node) { n.Spec.Taints = nil })
			s.trouble = errors.New("no answer")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			var deleted []string
			s.deleting = func(o client.Object, options client.DeleteOptions) error {
				if *options.GracePeriodSeconds != 0 || *options.Preconditions.UID != o.GetUID() {
					t.Errorf("%s is deleted with %+v", o.GetName(), options)
				}
				deleted = append(deleted, o.GetName())
				return nil
			}
			for _, name := range []string{"first", "second", "third"} {
				s.pod(name, corev1.PodSpec{Volumes: claims()}, "keeps/it")
			}
			s.pod("claimless", corev1.PodSpec{}, "keeps/it")
			s.lives(90 * time.Second)
			s.state = machines.Stopped
			s.passes(12 * time.Second)
			s.wantTaint(true)
			if len(deleted) > 0 {
				t.Errorf("%q were deleted, and Kubernetes has not evicted them", deleted)
			}
			s.evict("first", "second", "claimless")
			c.before(s)
			s.passes(10 * time.Second)
			if slices.Sort(deleted); !slices.Equal(deleted, c.want) {
				t.Errorf("%q were deleted, want %q", deleted, c.want)
			}
		})
	}
}

// TestPodsOfAMachineThatIsBack lets the machine start again, and a new pod there be deleted, right before the pods are
// read: an earlier proof does not apply to this pod.
func TestPodsOfAMachineThatIsBack(t *testing.T) {
	s := newScene(t)
	s.deleting = func(o client.Object, _ client.DeleteOptions) error {
		t.Errorf("%s is deleted", o.GetName())
		return nil
	}
	s.lives(90 * time.Second)
	s.state = machines.Stopped
	s.passes(2 * time.Second)
	s.wantTaint(true)
	reader, read := s.reader, false
	s.reader = interceptor.NewClient(s.api, interceptor.Funcs{
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			s.renew()
			s.pod("late", corev1.PodSpec{Volumes: claims()}, "keeps/it")
			s.evict("late")
			s.reader, read = reader, true
			return reader.List(ctx, list, options...)
		},
	})
	s.passes(3 * time.Second)
	if !read {
		t.Error("no pods were read")
	}
}

// TestPodsThatCannotBeDeleted checks that a failed deletion is retried, at a limited rate, and does not stop others.
func TestPodsThatCannotBeDeleted(t *testing.T) {
	s := newScene(t)
	s.pod("first", corev1.PodSpec{Volumes: claims()}, "keeps/it")
	s.pod("second", corev1.PodSpec{Volumes: claims()}, "keeps/it")
	s.lives(90 * time.Second)
	times, others := 0, 0
	s.deleting = func(o client.Object, _ client.DeleteOptions) error {
		if o.GetName() == "second" {
			others++
			return nil
		}
		times++
		return errors.New("not authorized")
	}
	s.state = machines.Stopped
	s.passes(12 * time.Second)
	s.evict("first", "second")
	before := s.failed()
	s.passes(5 * time.Minute)
	if s.failed() == before || times < 5 || times > 25 || others != 1 {
		t.Errorf("it was tried %d times, another pod %d times, and %v failures are counted", times, others,
			s.failed()-before)
	}
}
