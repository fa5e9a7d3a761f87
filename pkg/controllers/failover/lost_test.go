package failover

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/machines"
)

// attach creates a VolumeAttachment of the node "one". csi-attacher's finalizer keeps it after its deletion.
func (s *scene) attach(name string, edit func(*storagev1.VolumeAttachment)) {
	s.Helper()
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID("uid of " + name), Annotations: map[string]string{nodeIDNote: "i-one"},
		Finalizers: []string{"external-attacher/ebs-csi-example"},
	}}
	a.Spec.Attacher, a.Spec.NodeName = driverName, "one"
	edit(a)
	s.must(s.api.Create(s.Context(), a))
}

func asItIs(*storagev1.VolumeAttachment) {}

// deletes carries out deletions, and checks that their preconditions name the object that was seen.
func (s *scene) deletes() {
	s.deleting = func(o client.Object, options client.DeleteOptions) error {
		p := options.Preconditions
		if p == nil || p.UID == nil || *p.UID != o.GetUID() || p.ResourceVersion == nil ||
			*p.ResourceVersion != o.GetResourceVersion() {
			s.Errorf("%s is deleted with %+v", o.GetName(), p)
		}
		return s.api.Delete(s.Context(), o, &options)
	}
}

// going returns the VolumeAttachments whose deletion has begun.
func (s *scene) going() (names []string) {
	s.Helper()
	var list storagev1.VolumeAttachmentList
	s.must(s.api.List(s.Context(), &list))
	for _, a := range list.Items {
		if a.DeletionTimestamp != nil {
			names = append(names, a.Name)
		}
	}
	return names
}

func (s *scene) wantGoing(want ...string) {
	s.Helper()
	if have := s.going(); !slices.Equal(have, want) {
		s.Errorf("the VolumeAttachments %q are deleted, want %q", have, want)
	}
}

// lose deletes the Node, as the cloud's own controller does.
func (s *scene) lose() {
	s.Helper()
	s.must(s.api.Delete(s.Context(), s.node()))
}

// TestVolumesOfALostNode checks that a node's volumes are freed if its machine is terminated and its Node was deleted
// before it could be put out of service. Other nodes' volumes stay.
func TestVolumesOfALostNode(t *testing.T) {
	s := newScene(t)
	s.deletes()
	s.join("two", "2")
	s.attach("first", asItIs)
	s.attach("second", asItIs)
	s.attach("another driver's", func(a *storagev1.VolumeAttachment) { a.Spec.Attacher = "another" })
	s.attach("of a node that lives", func(a *storagev1.VolumeAttachment) {
		a.Spec.NodeName, a.Annotations[nodeIDNote] = "two", "i-two"
	})
	s.provider.answer = func(q machines.Query) (machines.Machine, error) {
		state := machines.Terminated
		if q.Node != "i-one" {
			state = machines.Running
		}
		return machines.Machine{State: state, Says: fmt.Sprintf("%s is %s", q.Node, state)}, nil
	}
	s.pod("has-ended", corev1.PodSpec{Volumes: claims()})
	ended := &corev1.Pod{}
	s.must(s.api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "has-ended"}, ended))
	ended.Status.Phase = corev1.PodFailed
	s.must(s.api.Status().Update(t.Context(), ended))
	s.lose()
	s.passes(2 * time.Second)
	s.wantGoing("first", "second")
	s.wantEvent("VolumesFreed", "i-one is terminated")
	for range 6 {
		s.renewOf("two")
		s.passes(10 * time.Second)
	}
	if len(s.recorder.Events) > 0 {
		t.Errorf("an event says %q", <-s.recorder.Events)
	}
}

// TestVolumesOfALostNodeStay checks that a lost node's volumes are not freed while its machine may run or its pods
// would make Kubernetes attach them again, and that an event says so.
func TestVolumesOfALostNodeStay(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *scene)
		says   string
		end    func(s *scene) // ends the cause; nil if it never ends
	}{
		"it runs": {func(s *scene) { s.state = machines.Running }, "i-one is running",
			func(s *scene) { s.state = machines.Terminated }},
		"it is being terminated": {func(s *scene) { s.state = machines.Stopping }, "may run again",
			func(s *scene) { s.state = machines.Terminated }},
		"it is stopped": {func(s *scene) { s.state = machines.Stopped }, "may run again",
			func(s *scene) { s.state = machines.Terminated }},
		"the provider is away": {func(s *scene) { s.trouble = errors.New("no answer in time") }, "no answer in time",
			func(s *scene) { s.trouble = nil }},
		"the provider has forgotten it": {func(s *scene) { s.state = machines.Missing }, "may run again", nil},
		"pods are bound to it": {func(s *scene) { s.pod("web-0", corev1.PodSpec{Volumes: claims()}) }, "ns/web-0",
			func(s *scene) { s.evict("web-0") }},
		"csi-attacher has noted no machine": {func(s *scene) {
			a := &storagev1.VolumeAttachment{}
			s.must(s.api.Get(s.Context(), client.ObjectKey{Name: "a"}, a))
			a.Annotations = nil
			s.must(s.api.Update(s.Context(), a))
		}, "not noted", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.deletes()
			s.attach("a", asItIs)
			s.lives(90 * time.Second)
			s.state = machines.Terminated
			c.change(s)
			s.lose()
			s.passes(80 * time.Second)
			if len(s.recorder.Events) > 0 {
				t.Errorf("after 80 s an event says %q", <-s.recorder.Events)
			}
			s.passes(10 * time.Minute)
			s.wantGoing()
			s.wantEvent("VolumesOfLostNode", c.says)
			if len(s.recorder.Events) > 0 {
				t.Errorf("another event says %q", <-s.recorder.Events)
			}
			if c.end != nil {
				c.end(s)
				s.passes(time.Minute + time.Second)
				s.wantGoing("a")
			}
		})
	}
}

// TestAnAnswerIsMissing checks that one missing answer of the provider causes only a short delay.
func TestAnAnswerIsMissing(t *testing.T) {
	s := newScene(t)
	s.deletes()
	s.attach("a", asItIs)
	s.state, s.trouble = machines.Terminated, errors.New("no answer in time")
	s.lose()
	s.passes(time.Second)
	s.trouble = nil
	s.passes(askLater)
	s.wantGoing("a")
}

// TestALostNodeIsBack checks that nothing is freed if only a lagging cache lacks the Node, or if the VolumeAttachment
// has changed.
func TestALostNodeIsBack(t *testing.T) {
	s := newScene(t)
	s.deletes()
	s.attach("a", asItIs)
	s.lives(90 * time.Second)
	s.state = machines.Terminated
	late := &lateCache{Client: s.cache}
	s.must(late.catchUp(t.Context(), s.api))
	s.cache, late.nodes = late, corev1.NodeList{}
	late.attachments.Items = nil
	s.must(s.api.List(t.Context(), &late.attachments))
	s.passes(30 * time.Second)
	s.wantGoing()
	s.lose()
	a := late.attachments.Items[0].DeepCopy()
	a.Annotations[nodeIDNote] = "i-two"
	s.must(s.api.Update(t.Context(), a))
	s.passes(30 * time.Second)
	s.wantGoing()
	if len(s.recorder.Events) > 0 {
		t.Errorf("an event says %q", <-s.recorder.Events)
	}
}

// TestLostNodesOfAStandBy checks that a manager that does not lead frees nothing.
func TestLostNodesOfAStandBy(t *testing.T) {
	s := newScene(t)
	s.deletes()
	elected := make(chan struct{})
	s.elected = elected
	s.attach("a", asItIs)
	s.state = machines.Terminated
	s.lose()
	s.passes(30 * time.Second)
	s.wantGoing()
	close(elected)
	s.passes(time.Second)
	s.wantGoing("a")
}

// TestRefusedDeletion checks that a deletion that the API server refuses is counted as a failure and retried.
func TestRefusedDeletion(t *testing.T) {
	s := newScene(t)
	s.attach("a", asItIs)
	s.lives(90 * time.Second)
	s.state = machines.Terminated
	s.lose()
	s.deleting = func(client.Object, client.DeleteOptions) error { return errors.New("forbidden") }
	before := s.failed()
	s.passes(time.Minute)
	if s.failed() < before+5 {
		t.Errorf("%v failures are counted, before it %v", s.failed(), before)
	}
	s.deletes()
	s.passes(askLater)
	s.wantGoing("a")
}

// TestOneRefusedDeletion checks that a VolumeAttachment that cannot be deleted, or has changed, does not keep the
// others.
func TestOneRefusedDeletion(t *testing.T) {
	for name, c := range map[string]struct {
		refusal error
		counts  bool // as a failure
	}{
		"it cannot be deleted": {errors.New("forbidden"), true},
		"it has changed":       {apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			for _, attachment := range []string{"a", "b", "c"} {
				s.attach(attachment, asItIs)
			}
			s.state = machines.Terminated
			s.lose()
			refused := ""
			s.deleting = func(o client.Object, options client.DeleteOptions) error {
				if refused == "" || refused == o.GetName() {
					refused = o.GetName()
					return c.refusal
				}
				return s.api.Delete(s.Context(), o, &options)
			}
			before := s.failed()
			s.passes(time.Second)
			if have := s.going(); len(have) != 2 || slices.Contains(have, refused) {
				t.Errorf("the VolumeAttachments %q are deleted, want all but %q", have, refused)
			}
			if have := s.failed() > before; have != c.counts {
				t.Errorf("it counts as a failure: %t, want %t", have, c.counts)
			}
		})
	}
}
