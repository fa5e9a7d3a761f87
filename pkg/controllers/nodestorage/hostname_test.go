package nodestorage

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// label sets the Node's hostname label, as its kubelet may.
func (s *simulation) label(hostname string) {
	s.Helper()
	n := &corev1.Node{}
	s.must(s.api.Get(s.Context(), client.ObjectKey{Name: "node"}, n))
	n.Labels = map[string]string{corev1.LabelHostname: hostname}
	s.must(s.api.Update(s.Context(), n))
}

// told returns the first master's events, one per line.
func (s *simulation) told() (all string) {
	for recorder := s.masters[0].events.(*events.FakeRecorder); len(recorder.Events) > 0; {
		all += <-recorder.Events + "\n"
	}
	return all
}

// leadsTo returns the nodes that PersistentVolumes name.
func (s *simulation) leadsTo() (hostnames []string) {
	for _, pv := range s.all() {
		for _, term := range pv.Spec.NodeAffinity.Required.NodeSelectorTerms {
			hostnames = append(hostnames, term.MatchExpressions[0].Values...)
		}
	}
	slices.Sort(hostnames)
	return slices.Compact(hostnames)
}

// TestTakenHostname checks that nothing is offered for a node whose label is the name or label of another node: its
// PersistentVolumes would be used there.
func TestTakenHostname(t *testing.T) {
	for name, victim := range map[string]client.Object{
		"the name": &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "victim"}},
		"the label": &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "another",
			Labels: map[string]string{corev1.LabelHostname: "victim"}}},
		"the name of one that is away": &v1alpha1.NodeStorage{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "victim"}},
		"the label of one that is away": &v1alpha1.NodeStorage{ObjectMeta: metav1.ObjectMeta{Namespace: "ns",
			Name: "another", Annotations: map[string]string{v1alpha1.HostnameAnnotation: "victim"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSimulation(t, 1, 0)
			s.must(s.api.Create(t.Context(), victim))
			s.label("victim")
			for range 4 {
				s.settle(0, 2)
				s.report()
			}
			if led := s.leadsTo(); len(led) > 0 {
				t.Errorf("PersistentVolumes lead to %q", led)
			}
			if told := s.told(); !strings.Contains(told, victim.GetName()) || strings.Count(told, "HostnameNotOwn") != 1 {
				t.Errorf("people were told %q, want that %s has the label once", told, victim.GetName())
			}
			if _, again := s.look(time.Now()); again != time.Minute {
				t.Errorf("it is looked at again in %v, want in a minute: what the other does is no event of this node", again)
			}
			s.label("its-own")
			s.settle(0, 2)
			s.report()
			s.settle(0, 2)
			if led := s.leadsTo(); !slices.Equal(led, []string{"its-own"}) {
				t.Errorf("with a label of its own PersistentVolumes lead to %q", led)
			}
		})
	}
}

// TestChangedHostname checks that no more volumes are offered after a node's label has changed, until an operator
// removes the annotation.
func TestChangedHostname(t *testing.T) {
	s := newSimulation(t, 1, 0)
	s.label("first")
	for range 2 {
		s.settle(0, 2)
		s.report()
	}
	s.settle(0, 2)
	s.bind()
	s.label("second")
	for range 4 {
		s.settle(0, 2)
		s.report()
	}
	if storage := s.storage(); len(s.all()) > 0 || storage.Annotations[v1alpha1.HostnameAnnotation] != "first" {
		t.Errorf("PersistentVolumes lead to %q, and the annotations are %v", s.leadsTo(), storage.Annotations)
	}
	storage := s.storage()
	delete(storage.Annotations, v1alpha1.HostnameAnnotation)
	s.must(s.api.Update(t.Context(), storage))
	s.settle(0, 2)
	s.report()
	s.settle(0, 2)
	if led := s.leadsTo(); !slices.Equal(led, []string{"second"}) {
		t.Errorf("after the annotation was removed PersistentVolumes lead to %q", led)
	}
}
