package startup

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// taint adds the driver's taint again, as an autoscaler or a person does.
func (s *scene) taint() {
	s.Helper()
	node := &corev1.Node{}
	s.must(s.api.Get(s.Context(), client.ObjectKey{Name: "one"}, node))
	node.Spec.Taints = append(without(node.Spec.Taints, driver),
		corev1.Taint{Key: key(driver), Value: "again", Effect: corev1.TaintEffectNoSchedule})
	s.must(s.api.Update(s.Context(), node))
}

// TestChangesMeanwhile checks that a node that changes between the read and the write keeps its taint and is reconciled
// again.
func TestChangesMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(s *scene) error
		failures float64
	}{
		"somebody taints it anew": {func(s *scene) error { s.taint(); return nil }, 0},
		"it is another Node": {func(s *scene) error {
			node := &corev1.Node{}
			s.must(s.api.Get(s.Context(), client.ObjectKey{Name: "one"}, node))
			s.must(s.api.Delete(s.Context(), node))
			node.UID, node.ResourceVersion = "2", ""
			s.must(s.api.Create(s.Context(), node))
			s.taint() // Uses the next version: an API server gives out no version twice.
			return nil
		}, 0},
		"the API server is away": {func(*scene) error { return errors.New("no answer") }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.register("1", ours())
			s.writing = func() error { return c.change(s) }
			result, err := s.look("one")
			if err == nil && result.RequeueAfter == 0 {
				t.Error("it is not looked at again")
			}
			s.wantTaint(true)
			if got := value(t, s.metrics.failures); got != c.failures || err != nil != (got > 0) {
				t.Errorf("%v failures are counted, want %v: %v", got, c.failures, err)
			}
			s.writing = func() error { return nil }
			s.register("2", ours())
			if name != "it is another Node" {
				s.register("1", ours())
			}
			s.must(s.reconcile())
			s.wantTaint(false)
		})
	}
}

// TestTwoManagers checks that two managers that both believe they lead remove the taint once.
func TestTwoManagers(t *testing.T) {
	s := newScene(t)
	s.register("1", ours())
	other := newReconciler(s.Options, s.api, s.api, s.events)
	s.writing = func() error {
		_, err := other.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "one"}})
		return err
	}
	s.must(s.reconcile())
	s.must(s.reconcile())
	s.wantTaint(false)
	if a, b := value(t, s.metrics.removed), value(t, other.metrics.removed); a != 0 || b != 1 {
		t.Errorf("they have removed it %v and %v times, want 0 and 1", a, b)
	}
}

// TestAgain checks that a taint that is added again is removed again.
func TestAgain(t *testing.T) {
	s := newScene(t)
	s.register("1", ours())
	s.must(s.reconcile())
	s.taint()
	s.must(s.reconcile())
	s.wantTaint(false)
	if got := value(t, s.metrics.removed); got != 2 {
		t.Errorf("%v removals are counted, want 2", got)
	}
}

// TestStaleCache checks a cache that lags: it has a registration that is gone.
func TestStaleCache(t *testing.T) {
	s := newScene(t)
	s.register("1", ours())
	stale := fake.NewClientBuilder().WithScheme(s.api.Scheme())
	for _, o := range []client.Object{&corev1.Node{}, &storagev1.CSINode{}} {
		s.must(s.api.Get(t.Context(), client.ObjectKey{Name: "one"}, o))
		stale.WithObjects(o)
	}
	s.register("1")
	s.cache = interceptor.NewClient(stale.Build(), interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			t.Error("a node whose driver is not registered is written to")
			return nil
		},
	})
	s.must(s.reconcile())
	s.wantTaint(true)
}

// TestDeletedNode checks that a deleted node does not count as waiting, even if it is deleted right before the write.
func TestDeletedNode(t *testing.T) {
	for name, registered := range map[string]bool{"while it waits": false, "when its taint goes": true} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			gone := func() error {
				return s.api.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}})
			}
			if s.writing = gone; registered {
				s.register("1", ours())
			}
			s.must(s.reconcile())
			if !registered {
				s.must(gone())
			}
			s.must(s.reconcile())
			s.wantWaiting(false)
			if failures, removed := value(t, s.metrics.failures), value(t, s.metrics.removed); failures+removed > 0 {
				t.Errorf("%v failures and %v removals are counted", failures, removed)
			}
		})
	}
}

// TestManyNodes starts a manager while hundreds of nodes wait and the cache lags: each node costs two reads past the
// cache and one write.
func TestManyNodes(t *testing.T) {
	const nodes = 200
	s := newScene(t)
	s.must(s.api.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}))
	stale := fake.NewClientBuilder().WithScheme(s.api.Scheme())
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		node.Spec.Taints = []corev1.Taint{{Key: key(driver), Effect: corev1.TaintEffectNoSchedule}}
		registration := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}}}}
		registration.Spec.Drivers = []storagev1.CSINodeDriver{ours()}
		stale.WithObjects(node.DeepCopy(), registration.DeepCopy())
		s.must(errors.Join(s.api.Create(t.Context(), node), s.api.Create(t.Context(), registration)))
	}
	recorder := events.NewFakeRecorder(nodes)
	s.events = recorder
	writes := 0
	s.cache = interceptor.NewClient(stale.Build(), interceptor.Funcs{
		Patch: func(ctx context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
			writes++
			return s.api.Patch(ctx, o, p)
		},
	})
	for i := range 2 * nodes { // The first round removes, and the second finds nothing to do.
		_, err := s.look(fmt.Sprintf("node-%d", i%nodes))
		s.must(err)
		if i == nodes-1 && s.reads != 2*nodes {
			t.Errorf("%d reads past the cache, want %d", s.reads, 2*nodes)
		}
	}
	if told := len(recorder.Events); writes != nodes || told != nodes {
		t.Errorf("%d writes and %d events, want %d of each", writes, told, nodes)
	}
}
