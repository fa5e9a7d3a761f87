package startup

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const driver = "ebs.csi.example"

// scene has an API with the node "one", which waits for the driver, and a reconciler.
type scene struct {
	*testing.T
	*reconciler
	api     client.WithWatch
	writing func() error // called right before a write; an error replaces it
	reads   int          // past the cache
}

func newScene(t *testing.T) *scene {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), storagev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, api: fake.NewClientBuilder().WithScheme(scheme).Build(), writing: func() error { return nil }}
	own := interceptor.NewClient(s.api, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			if err := s.writing(); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, options...)
		},
	})
	reader := interceptor.NewClient(s.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, name client.ObjectKey, o client.Object,
			_ ...client.GetOption) error {
			s.reads++
			return c.Get(ctx, name, o)
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			t.Error("something is listed past the cache")
			return nil
		},
	})
	s.reconciler = newReconciler(Options{Driver: driver, Log: slog.New(slog.DiscardHandler)}, own, reader,
		events.NewFakeRecorder(10))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one", UID: "1"}}
	node.Spec.Taints = []corev1.Taint{
		{Key: "other", Value: "x", Effect: corev1.TaintEffectNoSchedule},
		{Key: driver + "/agent-not-ready", Effect: corev1.TaintEffectNoExecute},
		{Key: "pd.csi.example/agent-not-ready", Effect: corev1.TaintEffectNoSchedule},
		{Key: driver + "/agent-not-ready", Value: "true", Effect: corev1.TaintEffectNoSchedule},
	}
	s.must(s.api.Create(t.Context(), node))
	return s
}

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// register writes the CSINode as a kubelet does when drivers come and go.
func (s *scene) register(uid string, drivers ...storagev1.CSINodeDriver) {
	s.Helper()
	o := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "one",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "one", UID: "1"}}}}
	o.OwnerReferences[0].UID = types.UID(uid)
	o.Spec.Drivers = drivers
	s.must(client.IgnoreNotFound(s.api.Delete(s.Context(), o.DeepCopy())))
	s.must(s.api.Create(s.Context(), o))
}

func (s *scene) look(name string) (reconcile.Result, error) {
	return s.Reconcile(s.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
}

func (s *scene) reconcile() error {
	_, err := s.look("one")
	return err
}

// keys returns the keys of the node's taints.
func (s *scene) keys() (keys []string) {
	s.Helper()
	node := &corev1.Node{}
	s.must(s.api.Get(s.Context(), client.ObjectKey{Name: "one"}, node))
	for _, t := range node.Spec.Taints {
		keys = append(keys, t.Key)
	}
	return keys
}

func (s *scene) wantTaint(want bool) {
	s.Helper()
	keys := s.keys()
	others := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == driver+"/agent-not-ready" })
	if !slices.Equal(others, []string{"other", "pd.csi.example/agent-not-ready"}) || len(keys) > len(others) != want {
		s.Errorf("the taints are %q, want the driver's: %t", keys, want)
	}
	s.wantWaiting(want)
}

func (s *scene) wantWaiting(want bool) {
	s.Helper()
	if number := map[bool]float64{true: 1}[want]; value(s.T, s.metrics.waiting) != number {
		s.Errorf("%v nodes are counted as waiting, want %v", value(s.T, s.metrics.waiting), number)
	}
}

// ours returns the kubelet's entry for a driver without a volume limit.
func ours() storagev1.CSINodeDriver { return storagev1.CSINodeDriver{Name: driver, NodeID: "i-1"} }

// TestRemoval checks that the taint is removed once the driver is registered on this very node, and not before.
func TestRemoval(t *testing.T) {
	other, bounded := storagev1.CSINodeDriver{Name: "other", NodeID: "i-1"}, ours()
	bounded.Allocatable = &storagev1.VolumeNodeResources{Count: ptr.To[int32](25)}
	for name, c := range map[string]struct {
		register func(s *scene)
		want     bool
	}{
		"no registration":         {func(*scene) {}, true},
		"no driver":               {func(s *scene) { s.register("1") }, true},
		"another driver":          {func(s *scene) { s.register("1", other) }, true},
		"an earlier Node":         {func(s *scene) { s.register("0", ours()) }, true},
		"the driver":              {func(s *scene) { s.register("1", ours()) }, false},
		"the driver with a bound": {func(s *scene) { s.register("1", bounded) }, false},
		"the driver among others": {func(s *scene) { s.register("1", other, ours()) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			c.register(s)
			s.must(s.reconcile())
			s.wantTaint(c.want)
			recorder, ok := s.events.(*events.FakeRecorder)
			if !ok || len(recorder.Events) > 0 == c.want {
				t.Errorf("%d events were written", len(recorder.Events))
			}
			s.must(s.reconcile()) // Nothing is left to do.
			if want := map[bool]int{true: 0, false: 2}[c.want]; s.reads != want {
				t.Errorf("%d reads past the cache, want %d: the cache says enough of most nodes", s.reads, want)
			}
		})
	}
}

// TestEvents checks that nodes without the taint cause no reconciliation, and that any removal of the taint does.
func TestEvents(t *testing.T) {
	s := newScene(t)
	with, without := &corev1.Node{}, &corev1.Node{}
	s.must(s.api.Get(t.Context(), client.ObjectKey{Name: "one"}, with))
	p, q, listed := s.tainted(), s.registered(), &storagev1.CSINode{}
	others := &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: "other"}}}}
	listed.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "other"}, ours()}
	for name, c := range map[string]struct{ have, want bool }{
		"a node joins":           {p.Create(event.CreateEvent{Object: without}), false},
		"a node joins and waits": {p.Create(event.CreateEvent{Object: with}), true},
		"a status is reported":   {p.Update(event.UpdateEvent{ObjectOld: without, ObjectNew: without}), false},
		"a person removes it":    {p.Update(event.UpdateEvent{ObjectOld: with, ObjectNew: without}), true},
		"it comes again":         {p.Update(event.UpdateEvent{ObjectOld: without, ObjectNew: with}), true},
		"a node goes":            {p.Delete(event.DeleteEvent{Object: without}), false},
		"a node goes that waits": {p.Delete(event.DeleteEvent{Object: with}), true},
		"a kubelet begins":       {q.Create(event.CreateEvent{Object: &storagev1.CSINode{}}), false},
		"another registers":      {q.Create(event.CreateEvent{Object: others}), false},
		"a driver registers":     {q.Update(event.UpdateEvent{ObjectNew: listed}), true},
	} {
		if c.have != c.want {
			t.Errorf("%s: looked at is %t, want %t", name, c.have, c.want)
		}
	}
}
