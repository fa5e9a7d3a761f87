package volumeset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient/csiclienttest"
)

// talker is a driver with a given answer.
type talker struct {
	created  int
	asked    csiclient.Request // last request
	deleted  int
	err      error
	topology bool
}

func (d *talker) Driver() string    { return "driver" }
func (d *talker) HasTopology() bool { return d.topology }

func (d *talker) Create(_ context.Context, r csiclient.Request) (csiclient.Volume, error) {
	d.created++
	d.asked = r
	return csiclient.Volume{Handle: "handle-" + r.Name, SizeBytes: r.SizeBytes}, d.err
}

func (d *talker) Delete(context.Context, string) error {
	d.deleted++
	return d.err
}

// bench returns a reconciler with a fake API that has these objects.
func bench(t *testing.T, calls interceptor.Funcs, objects ...client.Object) (*reconciler, *talker) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, storagev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(
		&v1alpha1.PersistentVolumeSet{}).
		WithInterceptorFuncs(calls)
	for name, find := range indexes() {
		builder.WithIndex(&corev1.PersistentVolume{}, name, find)
	}
	api := builder.Build()
	driver := &talker{}
	r, _ := newParts(api, api, benchOptions(driver), &events.FakeRecorder{}, func(string) {})
	r.filler.identity, r.filler.fresh = "manager", time.Hour // However slow the machine is.
	t.Cleanup(r.filler.queue.ShutDown)
	return r, driver
}

// removing returns a remover for a reconciler.
func removing(r *reconciler, driver Driver, timeout time.Duration) *remover {
	return &remover{
		client: r.client, live: r.client, driver: driver, timeout: timeout, events: &events.FakeRecorder{},
		now: time.Now, fresh: time.Hour, shares: shares{workers: 1, quarters: half}, failed: r.failed,
		changed: func(context.Context, *corev1.PersistentVolume) {},
	}
}

func benchOptions(driver Driver) Options {
	return Options{Driver: driver, Log: slog.New(slog.DiscardHandler), Slots: 4, Workers: 1, Timeout: time.Minute,
		Surplus: time.Minute}
}

func fast() *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "driver"}
}

// stored returns a set as stored in the API server, with our finalizer.
func stored(change ...func(*v1alpha1.PersistentVolumeSet)) *v1alpha1.PersistentVolumeSet {
	set := newSet(2, 4, change...)
	set.Finalizers = []string{v1alpha1.VolumeSetFinalizer}
	set.Spec.Template.Metadata.Labels = set.Spec.Selector
	return set
}

// look reconciles the set and returns its new state.
func (r *reconciler) look(t *testing.T) *v1alpha1.PersistentVolumeSet {
	t.Helper()
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "set"}}); err != nil {
		t.Fatal(err)
	}
	set := &v1alpha1.PersistentVolumeSet{}
	if err := r.client.Get(t.Context(), types.NamespacedName{Name: "set"}, set); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return set
}

func reason(set *v1alpha1.PersistentVolumeSet) string {
	if len(set.Status.Conditions) == 0 {
		return ""
	}
	return set.Status.Conditions[0].Reason
}

// TestClassThatIsMissing checks that a set reports a missing class, and that the class maps to the set once it is
// created.
func TestClassThatIsMissing(t *testing.T) {
	r, _ := bench(t, interceptor.Funcs{}, stored())
	if set := r.look(t); reason(set) != reasonClassNotFound || set.Status.Driver != "" || len(set.Status.Slots) > 0 {
		t.Errorf("without a class the status is %+v", set.Status)
	}
	if sets := r.setsOfClass(t.Context(), fast()); len(sets) != 1 || sets[0].Name != "set" {
		t.Errorf("the class belongs to the sets %v", sets)
	}
	if err := r.client.Create(t.Context(), fast()); err != nil {
		t.Fatal(err)
	}
	if set := r.look(t); len(set.Status.Slots) != 2 || set.Status.Driver != "driver" {
		t.Errorf("with its class the status is %+v", set.Status)
	}
}

// TestSetThatNobodyServed checks that a deleted set for which nothing was created goes.
func TestSetThatNobodyServed(t *testing.T) {
	r, _ := bench(t, interceptor.Funcs{}, stored(leaving))
	if set := r.look(t); set.Name != "" {
		t.Errorf("it stays: %+v", set)
	}
}

// TestDeletedSetTakesYoungVolumes checks that a deleted set stays until Kubernetes has processed its last volume and it
// can be deleted, whether claims of the template could bind to it or not: nobody else would delete it.
func TestDeletedSetTakesYoungVolumes(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.PersistentVolumeSet){
		"of this template": func(*v1alpha1.PersistentVolumeSet) {},
		"of a smaller one": func(set *v1alpha1.PersistentVolumeSet) {
			set.Spec.Template.Spec.Capacity = resource.MustParse("2Gi")
		},
		"of another class": func(set *v1alpha1.PersistentVolumeSet) { set.Spec.Template.Spec.StorageClassName = "slow" },
	} {
		v := described(t, stored(), "young:fresh")[0]
		served := func(set *v1alpha1.PersistentVolumeSet) { set.Status.Driver = "driver" }
		r, _ := bench(t, interceptor.Funcs{}, fast(), v, stored(leaving, change, served))
		if set := r.look(t); set.Name == "" {
			t.Errorf("%s: the set goes, and its volume stays", name)
			continue
		}
		if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(v), v); err != nil {
			t.Fatal(err)
		}
		v.Status.Phase = corev1.VolumeAvailable
		if err := r.client.Status().Update(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		r.look(t)
		err := r.client.Get(t.Context(), client.ObjectKeyFromObject(v), v)
		if err != nil || v.DeletionTimestamp == nil {
			t.Errorf("%s: the volume is not deleted: %v, %v", name, v.DeletionTimestamp, err)
		}
		if set := r.look(t); set.Name != "" {
			t.Errorf("%s: the set stays: %+v", name, set.Status)
		}
	}
}

// TestEditedStatus checks a set whose status a person edits: without its driver no slot goes, a slot without its order
// is reported, and a surplus is kept no longer than any other.
func TestEditedStatus(t *testing.T) {
	r, _ := bench(t, interceptor.Funcs{}, fast(), stored(leaving, making("x")))
	if r.filler.ask(slotKey{"set", "x"}); r.look(t).Name == "" {
		t.Error("without its driver the set goes, and its slot with it")
	}
	lost := func(set *v1alpha1.PersistentVolumeSet) { set.Status.Orders = nil }
	r, _ = bench(t, interceptor.Funcs{}, fast(), stored(making("x"), lost))
	r.filler.fill(slotKey{"set", "x"}, "fast")
	r.filler.next(t.Context())
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "set"}}); err == nil {
		t.Error("nothing is wrong with a slot without its order")
	}
	const says = "of slot x is not in the status"
	if set := r.look(t); reason(set) != reasonRefused || !strings.Contains(set.Status.Conditions[0].Message, says) {
		t.Errorf("without the order of a slot the condition is %+v", set.Status.Conditions)
	}
	set := stored(func(set *v1alpha1.PersistentVolumeSet) {
		set.Spec.MinimumReplicas, set.Status.SurplusSeconds = 0, -1<<31
	})
	r, _ = bench(t, interceptor.Funcs{}, fast(), set, described(t, set, "a:available")[0])
	if r.look(t); r.surplus["set"].before < 0 {
		t.Errorf("a surplus is borne since %v", r.surplus["set"].before)
	}
}

// TestTemplateThatIsRefused checks that the driver gets no request for a volume whose object the API server would
// refuse.
func TestTemplateThatIsRefused(t *testing.T) {
	refusal := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PersistentVolume").GroupKind(), "x", nil)
	r, _ := bench(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, ok := o.(*corev1.PersistentVolume); ok {
				return refusal
			}
			return c.Create(ctx, o, options...)
		},
	}, stored(), fast())
	if set := r.look(t); reason(set) != reasonTemplate || len(set.Status.Slots) > 0 {
		t.Errorf("the status is %+v", set.Status)
	}
}

// TestRefusalComesToRest checks that a set whose volumes the API server refuses does not ask or write in each
// reconciliation: its writes cause reconciliations, and each refusal has a different text. A changed template is tried
// immediately.
func TestRefusalComesToRest(t *testing.T) {
	asked, now := 0, time.Unix(1000, 0)
	var refusal func(name string) error
	r, _ := bench(t, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			asked++
			return refusal(o.GetName())
		},
	}, stored(), fast())
	r.now = func() time.Time { return now }
	kind := corev1.SchemeGroupVersion.WithKind("PersistentVolume").GroupKind()
	for says, c := range map[string]struct {
		refusal func(name string) error
		pause   time.Duration
	}{
		reasonTemplate: {func(name string) error { return apierrors.NewInvalid(kind, name, nil) }, lastPause},
		reasonUnproven: {func(string) error {
			return fmt.Errorf("read tcp 10.0.0.1:%d->10.0.0.2:443: connection reset by peer", asked)
		}, unprovenPause},
	} {
		refusal, asked = c.refusal, 0
		first := r.look(t)
		for range 5 {
			if set := r.look(t); reason(set) != says || set.ResourceVersion != first.ResourceVersion || asked != 1 {
				t.Fatalf("%s: after %d questions the status is written again: %+v", says, asked, set.Status.Conditions)
			}
		}
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "set"}})
		if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > c.pause {
			t.Errorf("%s: the next look is after %v (%v)", says, result.RequeueAfter, err)
		}
		first.Generation++
		first.Spec.Template.Metadata.Annotations = map[string]string{"for": says}
		if err := r.client.Update(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		if r.look(t); asked != 2 {
			t.Errorf("%s: a changed template is not tried: %d questions", says, asked)
		}
		now = now.Add(c.pause)
		if r.look(t); asked != 3 {
			t.Errorf("%s: after the pause it is not asked again: %d questions", says, asked)
		}
		now = now.Add(c.pause)
	}
}

// TestMessageThatIsTooLong checks that a set reports why it creates nothing, however long the error is: the API server
// refuses a condition with a message of more than 32,768 characters.
func TestMessageThatIsTooLong(t *testing.T) {
	word := strings.Repeat("ü", 40_000)
	r, _ := bench(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewBadRequest("no label: " + word)
		},
	}, stored(), fast())
	set := r.look(t)
	if len(set.Status.Conditions) == 0 || reason(set) != reasonUnproven {
		t.Fatalf("the status is %+v", set.Status)
	}
	said := set.Status.Conditions[0].Message
	isWhole := strings.Contains(said, "no label: üü") && strings.HasSuffix(said, "bytes more)")
	if len(said) > 32768 || !utf8.ValidString(said) || !isWhole {
		t.Errorf("the message has %d bytes: %.200s", len(said), said)
	}
}

// TestDryRunThatFails checks that a failing dry run only stops the creation of volumes.
func TestDryRunThatFails(t *testing.T) {
	set := stored(making("x", "y"),
		func(set *v1alpha1.PersistentVolumeSet) { set.Spec.MinimumReplicas, set.Spec.MaximumReplicas = 4, 9 })
	bound := described(t, set, "a:bound")[0]
	r, _ := bench(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if len(options) > 0 {
				return apierrors.NewInternalError(errors.New("the webhook is away"))
			}
			return c.Create(ctx, o, options...)
		},
	}, set, fast(), bound)
	if _, err := r.filler.attempt(t.Context(), slotKey{set: "set", slot: "x"}); err != nil {
		t.Fatal(err)
	}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "set"}})
	if err != nil || result.RequeueAfter != unprovenPause {
		t.Fatalf("%+v, %v", result, err)
	}
	got := r.look(t)
	if len(got.Status.Slots) != 1 || got.Status.Slots[0].Name != "y" ||
		!r.filler.slots[slotKey{set: "set", slot: "y"}].queued {
		t.Errorf("the slots are %+v, want y", got.Status.Slots)
	}
	if got.Status.BoundReplicas != 1 || reason(got) != reasonUnproven ||
		!strings.Contains(got.Status.Conditions[0].Message, "the webhook is away") {
		t.Errorf("the status is %+v", got.Status)
	}
}

// TestDryRunThatIsNotKnown checks that a set's template gets the blame for its own refusal only, and not for a webhook
// that knows no dry run.
func TestDryRunThatIsNotKnown(t *testing.T) {
	denied := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusBadRequest, Message: `webhook "w" denied it`}
	kind := corev1.SchemeGroupVersion.WithKind("PersistentVolume").GroupKind()
	for name, c := range map[string]struct {
		answer error
		want   string
	}{
		"no dry run": {apierrors.NewBadRequest(`admission webhook "w" does not support dry run`), reasonUnproven},
		"denied":     {&apierrors.StatusError{ErrStatus: denied}, reasonTemplate},
		"forbidden":  {apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no")), reasonTemplate},
		"invalid":    {apierrors.NewInvalid(kind, "x", nil), reasonTemplate},
	} {
		r, _ := bench(t, interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return c.answer },
		}, stored(), fast())
		if set := r.look(t); reason(set) != c.want || len(set.Status.Slots) > 0 {
			t.Errorf("%s: the reason is %s with %d slots, want %s with 0", name, reason(set), len(set.Status.Slots), c.want)
		}
	}
}

// TestRelabelledVolume checks that a slot ends if its PersistentVolume exists, although the PersistentVolume no longer
// counts in the set.
func TestRelabelledVolume(t *testing.T) {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "moved", Labels: map[string]string{"pool": "b"}}}
	r, driver := bench(t, interceptor.Funcs{}, stored(making("moved")), fast(), v)
	if _, err := r.filler.attempt(t.Context(), slotKey{set: "set", slot: "moved"}); err != nil || driver.created > 0 {
		t.Fatalf("%v, %d requests", err, driver.created)
	}
	set := r.look(t)
	for _, slot := range set.Status.Slots {
		if slot.Name == "moved" {
			t.Errorf("the slot of %s stays", slot.Name)
		}
	}
	if len(set.Status.Slots) != 2 {
		t.Errorf("%d slots are there, want 2", len(set.Status.Slots))
	}
}

// TestVolumeThatCameAfterTheList checks that a PersistentVolume that is newer than the list counts, and is not mistaken
// for relabelled.
func TestVolumeThatCameAfterTheList(t *testing.T) {
	var r *reconciler
	lists := 0
	r, _ = bench(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			o := (&client.ListOptions{}).ApplyOptions(options)
			if _, ok := list.(*corev1.PersistentVolumeList); ok && o.FieldSelector == nil {
				lists++ // The list on which new slots are decided.
				_, _ = r.filler.attempt(t.Context(), slotKey{set: "set", slot: "x"})
			}
			return err
		},
	}, stored(making("x"), func(set *v1alpha1.PersistentVolumeSet) {
		set.Spec.MaximumReplicas = 2
		reordered(set, func(o *v1alpha1.VolumeOrder) { o.Template.Metadata.Labels = set.Spec.Selector })
	}), fast())
	set := r.look(t)
	if lists != 1 || len(set.Status.Slots) != 2 || set.Status.Slots[0].Name != "x" {
		t.Errorf("after %d lists there are the slots %+v, want x and one more", lists, set.Status.Slots)
	}
}

// TestRefusals checks that a refusal ends a slot only if no earlier request of any manager can have created the volume.
func TestRefusals(t *testing.T) {
	open, refusal := csiclienttest.Open()[0], csiclienttest.Refusals()[0]
	for name, c := range map[string]struct {
		manager string
		answers []error
		stays   bool
	}{
		"the first is refused":                        {"manager", []error{refusal}, false},
		"the first is not answered":                   {"manager", []error{open}, true},
		"the second is refused":                       {"manager", []error{open, refusal}, true},
		"the slot of another manager":                 {"another", []error{refusal}, true},
		"the second is refused, with the proof":       {"manager", []error{open, csiclienttest.Absent(refusal)}, false},
		"that of another manager, with the proof":     {"another", []error{csiclienttest.Absent(refusal)}, false},
		"the slot of a manager before there were any": {"", []error{refusal}, true},
	} {
		r, driver := bench(t, interceptor.Funcs{}, stored(making("x"), func(set *v1alpha1.PersistentVolumeSet) {
			set.Status.Slots[0].Manager, set.Spec.MaximumReplicas = c.manager, 1
		}), fast())
		r.look(t) // This takes over the slot.
		for _, driver.err = range c.answers {
			r.filler.next(t.Context())
			r.filler.queue.Add(slotKey{set: "set", slot: "x"}) // Skip the pause.
		}
		if set := r.look(t); (len(set.Status.Slots) > 0 && set.Status.Slots[0].Name == "x") != c.stays {
			t.Errorf("%s: the slots are %+v", name, set.Status.Slots)
		}
	}
}

// TestOldDefinition checks that a manager reports a CRD that drops fields, and sends no requests.
func TestOldDefinition(t *testing.T) {
	for what, prune := range map[string]func(*v1alpha1.PersistentVolumeSetStatus){
		"managers": func(s *v1alpha1.PersistentVolumeSetStatus) {
			for i := range s.Slots {
				s.Slots[i].Manager = ""
			}
		},
		"classes": func(s *v1alpha1.PersistentVolumeSetStatus) { s.Classes = nil },
	} {
		r, driver := bench(t, interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, c client.Client, name string, o client.Object,
				options ...client.SubResourceUpdateOption) error {
				if set, ok := o.(*v1alpha1.PersistentVolumeSet); ok {
					prune(&set.Status)
				}
				return c.SubResource(name).Update(ctx, o, options...)
			},
		}, stored(), fast())
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "set"}})
		if err == nil || !strings.Contains(err.Error(), "deploy/kubernetes/crds") || driver.created > 0 {
			t.Errorf("without %s: %v, %d requests", what, err, driver.created)
		}
	}
}

// TestRefusalAfterTheVolume checks that a created volume without a PersistentVolume is not given up.
func TestRefusalAfterTheVolume(t *testing.T) {
	r, driver := bench(t, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewServiceUnavailable("away")
		},
	}, stored(making("x")), fast())
	key := slotKey{set: "set", slot: "x"}
	if _, err := r.filler.attempt(t.Context(), key); err == nil {
		t.Fatal("without an API server it succeeds")
	}
	driver.err = csiclienttest.Refusals()[0]
	if _, err := r.filler.attempt(t.Context(), key); err == nil || r.filler.progressOf(key).withdrawn {
		t.Errorf("the next attempt ends with %v", err)
	}
}

// TestOneAfterARefusal checks that a driver that refuses is asked for one volume at a time, and that a new set starts
// without failures.
func TestOneAfterARefusal(t *testing.T) {
	r, _ := bench(t, interceptor.Funcs{}, stored(), fast())
	r.filler.failures["set"] = failures{place(nil).key(): {err: errors.New("no such pool")}}
	if set := r.look(t); len(set.Status.Slots) != 1 || reason(set) != reasonRefused {
		t.Errorf("after a refusal the status is %+v", set.Status)
	}
	set := r.look(t)
	if len(set.Status.Slots) != 1 {
		t.Errorf("while one is asked for there are the slots %+v", set.Status.Slots)
	}
	stuck := slotKey{"set", set.Status.Slots[0].Name}
	r.filler.ask(stuck)
	r.filler.ask(stuck)
	r.filler.refused(stuck, false, false, 0)
	if set = r.look(t); len(set.Status.Slots) != 2 {
		t.Errorf("beside one that is stuck there are the slots %+v, want one more", set.Status.Slots)
	}
	other, _ := bench(t, interceptor.Funcs{})
	other.filler.failures["set"] = failures{place(nil).key(): {err: errors.New("no such pool")}}
	other.look(t)
	if f := other.filler.failuresOf("set").last(); f.err != nil {
		t.Errorf("a set that is gone is remembered: %v", f.err)
	}
}

// TestNowhere checks that no volume is requested outside the places that a class allows.
func TestNowhere(t *testing.T) {
	zone := func(name string) []corev1.TopologySelectorTerm {
		return []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone",
			Values: []string{name}}}}}
	}
	for allowed, want := range map[string]int{"a": 2, "b": 0} {
		class := fast()
		class.AllowedTopologies = zone(allowed)
		node := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"zone": "a"}},
		}
		driver := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: "driver", NodeID: "node", TopologyKeys: []string{"zone"}}},
		}}
		r, talks := bench(t, interceptor.Funcs{}, stored(), class, node, driver)
		talks.topology = true
		set := r.look(t)
		if len(set.Status.Slots) != want || (reason(set) == reasonNowhere) != (want == 0) {
			t.Errorf("with zone %s allowed: %d slots, want %d; %s", allowed, len(set.Status.Slots), want, reason(set))
		}
	}
}

// TestSlotUntilItIsGone checks that a slot is processed until it is gone from the status: its object may be deleted
// unseen.
func TestSlotUntilItIsGone(t *testing.T) {
	r, driver := bench(t, interceptor.Funcs{}, stored(making("x")), fast())
	key := slotKey{set: "set", slot: "x"}
	for range 2 {
		if end, err := r.filler.attempt(t.Context(), key); end.gone || err != nil {
			t.Fatalf("%+v, %v", end, err)
		}
	}
	r.filler.fill(key, "fast")
	r.filler.again(key, outcome{})
	if !r.filler.slots[key].queued {
		t.Error("the slot is there, and was given up")
	}
	r.look(t) // This sees the PersistentVolume and removes the slot.
	if end, err := r.filler.attempt(t.Context(), key); !end.gone || err != nil || driver.created != 1 {
		t.Errorf("%+v, %v; %d requests", end, err, driver.created)
	}
}

// TestDeletionIsBounded checks that a driver that does not answer delays a deletion only until the timeout.
func TestDeletionIsBounded(t *testing.T) {
	set := stored()
	v := persistentVolume("driver", set, "x", newOrder(set.Spec.Template, v1alpha1.SlotClass{}), volumeOf(1<<30))
	v.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	r, driver := bench(t, interceptor.Funcs{}, v)
	remove := removing(r, mute{driver}, time.Millisecond)
	_, err := remove.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "x"}})
	if err == nil || !strings.Contains(err.Error(), "x was not deleted") {
		t.Errorf("the deletion ends with %v", err)
	}
}

// TestDeletionThatFails checks that an event of the PersistentVolume says once why its volume is not deleted, and that
// a full set reports it too, for as long as it lasts.
func TestDeletionThatFails(t *testing.T) {
	set := stored(func(set *v1alpha1.PersistentVolumeSet) { set.Spec.MaximumReplicas = 2 })
	all := described(t, set, "x:available:deleting y:bound")
	all[1].Spec.CSI.VolumeHandle = "another"
	r, driver := bench(t, interceptor.Funcs{}, set, fast(), all[0], all[1])
	remove, told, looks := removing(r, driver, time.Minute), events.NewFakeRecorder(10), 0
	remove.events, remove.changed = told, func(context.Context, *corev1.PersistentVolume) { looks++ }
	request := ctrl.Request{NamespacedName: types.NamespacedName{Name: "x"}}
	for _, words := range []string{"it is attached", "it is attached", "it has snapshots\x1b" + strings.Repeat("ü", 999)} {
		driver.err = errors.New(words)
		if _, err := remove.Reconcile(t.Context(), request); err == nil {
			t.Error("the deletion succeeds")
		}
	}
	if len(told.Events) != 2 || looks != 2 {
		t.Fatalf("there are %d events and %d looks, want 2 of each", len(told.Events), looks)
	}
	for _, words := range []string{"it is attached", "it has snapshots"} {
		text := <-told.Events
		text, isOurs := strings.CutPrefix(text, "Warning VolumeFailedDelete ")
		if !isOurs || !strings.HasPrefix(text, "the volume of x") || !strings.Contains(text, words) || len(text) > 1024 ||
			strings.ContainsRune(text, '\x1b') {
			t.Errorf("told is %q, want %q", text, words)
		}
	}
	if now := r.look(t); reason(now) != reasonMaximum ||
		!strings.Contains(now.Status.Conditions[0].Message, "1 being deleted (the volume of x was not deleted: it has") {
		t.Errorf("the set says %+v", now.Status.Conditions)
	}
	driver.err = nil
	for range 2 { // The second time it is gone.
		if _, err := remove.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	if r.failed.words["x"] != "" {
		t.Errorf("the words stay: %v", r.failed.words)
	}
}

// TestBoundVolumesNeedNoManager checks that a bound PersistentVolume loses the manager's finalizer once it has
// csi-provisioner's, and not before: one of them must delete its volume.
func TestBoundVolumesNeedNoManager(t *testing.T) {
	set := stored()
	v := persistentVolume("driver", set, "x", newOrder(set.Spec.Template, v1alpha1.SlotClass{}), volumeOf(1<<30))
	v.Spec.ClaimRef, v.Status.Phase = &corev1.ObjectReference{Name: "claim"}, corev1.VolumeBound
	r, driver := bench(t, interceptor.Funcs{}, v)
	remove := removing(r, driver, time.Minute)
	look := func() []string {
		t.Helper()
		if _, err := remove.Reconcile(t.Context(),
			ctrl.Request{NamespacedName: types.NamespacedName{Name: "x"}}); err != nil {
			t.Fatal(err)
		}
		if err := r.client.Get(t.Context(), types.NamespacedName{Name: "x"}, v); err != nil {
			t.Fatal(err)
		}
		return v.Finalizers
	}
	if left := look(); !slices.Equal(left, []string{v1alpha1.VolumeSetFinalizer}) {
		t.Errorf("before csi-provisioner has it: %q", left)
	}
	v.Finalizers = append(v.Finalizers, provisionerFinalizer)
	if err := r.client.Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if left := look(); !slices.Equal(left, []string{provisionerFinalizer}) || driver.deleted > 0 {
		t.Errorf("once csi-provisioner has it: %q, and %d volumes were deleted", left, driver.deleted)
	}
}

// TestLateFinalizer checks that a deleted volume without a claim goes although csi-provisioner added its finalizer
// after the claim was removed: csi-provisioner removes the finalizer from released volumes only.
func TestLateFinalizer(t *testing.T) {
	for words, deleted := range map[string]int{"x:available:deleting": 1, "x:available:deleting:retain": 0} {
		v := described(t, stored(), words)[0]
		v.Finalizers = []string{v1alpha1.VolumeSetFinalizer, provisionerFinalizer}
		r, driver := bench(t, interceptor.Funcs{}, v)
		remove := removing(r, driver, time.Minute)
		_, err := remove.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(v)})
		if err != nil {
			t.Fatal(err)
		}
		err = r.client.Get(t.Context(), client.ObjectKeyFromObject(v), v)
		if !apierrors.IsNotFound(err) || driver.deleted != deleted {
			t.Errorf("%s: it has the finalizers %q (%v), and %d volumes are deleted, want %d", words, v.Finalizers, err,
				driver.deleted, deleted)
		}
	}
}

// mute is a driver that does not answer.
type mute struct{ *talker }

func (mute) Delete(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestLeaderWithAnOldCache checks that a manager whose cached set lacks another manager's slots writes no slots, and
// sends no requests.
func TestLeaderWithAnOldCache(t *testing.T) {
	var seen *v1alpha1.PersistentVolumeSet
	r, driver := bench(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if set, ok := o.(*v1alpha1.PersistentVolumeSet); ok && seen != nil {
				seen.DeepCopyInto(set)
				return nil
			}
			return c.Get(ctx, key, o, options...)
		},
	}, stored(), fast())
	before := &v1alpha1.PersistentVolumeSet{}
	if err := r.client.Get(t.Context(), types.NamespacedName{Name: "set"}, before); err != nil {
		t.Fatal(err)
	}
	first := r.look(t)
	other, _ := newParts(r.client, r.client, benchOptions(driver), &events.FakeRecorder{}, func(string) {})
	t.Cleanup(other.filler.queue.ShutDown)
	seen = before
	other.look(t)
	seen = nil
	second := &v1alpha1.PersistentVolumeSet{}
	if err := r.client.Get(t.Context(), types.NamespacedName{Name: "set"}, second); err != nil {
		t.Fatal(err)
	}
	if len(first.Status.Slots) != 2 || len(second.Status.Slots) != 2 ||
		first.Status.Slots[0].Name != second.Status.Slots[0].Name || driver.created > 0 {
		t.Errorf("the slots were\n%+v\nand are\n%+v", first.Status.Slots, second.Status.Slots)
	}
}

// TestClassThatNamesTheClaim checks that a class whose parameters contain placeholders for the claim is refused before
// anything is created.
func TestClassThatNamesTheClaim(t *testing.T) {
	for value, isUsable := range map[string]bool{
		"namespace={{ .PVCNamespace }}": false, "of={{.PVCName}}": false, "of={{.PVName}}": true,
		"a/${pvc.metadata.name}":      false,
		"${pvc.metadata.namespace}/x": false, "x/${pv.metadata.name}": true, "plain": true, "{{": true,
		"${pvc.metadata.name": false,
	} {
		class := fast()
		class.Parameters = map[string]string{"some": value}
		r, _ := bench(t, interceptor.Funcs{}, stored(), class)
		set := r.look(t)
		if (reason(set) == reasonClassUnusable) == isUsable || (len(set.Status.Slots) == 0) == isUsable {
			t.Errorf("%q: %s, with %d slots", value, reason(set), len(set.Status.Slots))
		}
		if words := set.Status.Conditions[0].Message; !isUsable && !strings.Contains(words, `"some"`) {
			t.Errorf("%q: %s", value, words)
		}
	}
}
