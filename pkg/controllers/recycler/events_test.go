package recycler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
)

// telling returns a recycler of one released volume, the volume, and the recorded events.
func telling(t *testing.T, one record, calls interceptor.Funcs,
	objects ...client.Object) (*reconciler, *corev1.PersistentVolume, chan string) {
	t.Helper()
	one.Released = "gone"
	text, err := json.Marshal(one)
	scheme := runtime.NewScheme()
	if err := errors.Join(err, corev1.AddToScheme(scheme), storagev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	v := newVolume()
	v.Status.Phase = corev1.VolumeReleased
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "tenant", Name: "claim", UID: "gone"}
	metav1.SetMetaDataAnnotation(&v.ObjectMeta, v1alpha1.RecyclingAnnotation, string(text))
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, v)...).
		WithStatusSubresource(&corev1.PersistentVolume{}).WithInterceptorFuncs(calls).Build()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(v), v); err != nil {
		t.Fatal(err)
	}
	counts, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	recorder := events.NewFakeRecorder(100)
	return &reconciler{
		Options: Options{
			Drivers: []string{"driver"}, Namespace: ownNamespace, Image: "i", Delay: time.Minute, Deadline: time.Hour,
			Attempts: 3,
		},
		cache: api, live: api, write: api, events: recorder, memory: newMemory(time.Now), metrics: counts,
	}, v, recorder.Events
}

// TestLongWords checks that the API server accepts the events of a failed scrub, however long its pod's message is. It
// refuses an event with a text of more than 1,024 bytes, and the failure would go unnoticed.
func TestLongWords(t *testing.T) {
	one := record{Name: "scrub", State: scrubbing, Failures: 1}
	r, v, told := telling(t, one, interceptor.Funcs{})
	words := "\x1b" + strings.Repeat("ü", 2048)
	if err := r.note(t.Context(), view{volume: v, record: &one}, broke, words); err != nil {
		t.Fatal(err)
	}
	one.State, one.Failures = failed, 3
	if err := r.giveUp(t.Context(), view{volume: v, record: &one}, words); err != nil {
		t.Fatal(err)
	}
	r.tell(view{volume: v}, refuse, words, 0)
	for _, want := range []string{"ScrubFailed", "RecycleFailed", "RecycleRefused"} {
		_, rest, _ := strings.Cut(<-told, " ")
		reason, text, _ := strings.Cut(rest, " ")
		if reason != want || len(text) > 1024 || !utf8.ValidString(text) || !strings.Contains(text, `\x1büü`) {
			t.Errorf("the event %s of %d bytes, want %s: %.100s", reason, len(text), want, text)
		}
	}
}

// TestNamespaceThatIsGone checks that an event says why a scrub cannot begin, if its namespace is gone or does not
// admit it. Otherwise the volume would silently stay Released.
func TestNamespaceThatIsGone(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	for name, refusal := range map[string]error{
		"it is gone":         apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, ownNamespace),
		"it is being ended":  apierrors.NewForbidden(claims, "scrub", errors.New("it is being terminated")),
		"its quota is spent": apierrors.NewForbidden(claims, "scrub", errors.New("exceeded quota")),
	} {
		r, v, told := telling(t, record{Name: "scrub", State: scrubbing}, interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				return refusal
			},
		})
		for range 2 {
			_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: v.Name}})
		}
		if len(told) != 1 {
			t.Errorf("%s: there are %d events, want 1", name, len(told))
			continue
		}
		text := <-told
		isTold := strings.Contains(text, ownNamespace) && strings.Contains(text, refusal.Error())
		if !isTold || !strings.HasPrefix(text, "Warning ScrubRefused ") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// given returns a recycler and a scrubbed volume of the class that is about to be given back.
func given(t *testing.T, class string, calls interceptor.Funcs) (*reconciler, client.ObjectKey, chan string) {
	t.Helper()
	r, v, told := telling(t, record{Name: "scrub", State: clean, Claim: "gone"}, calls)
	v.Spec.StorageClassName = class
	if err := r.write.Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	return r, client.ObjectKeyFromObject(v), told
}

// TestClassIsNotedFirst checks that a volume is given back only once its class is in the list that makes the
// policy refuse claims with a data source, and that the other classes in it stay.
func TestClassIsNotedFirst(t *testing.T) {
	for class, key := range map[string]string{"fast": "fast", "": v1alpha1.NoClass} {
		r, volume, _ := given(t, class, interceptor.Funcs{})
		list := &corev1.ServiceAccount{}
		list.Namespace, list.Name = ownNamespace, v1alpha1.RecycledClasses
		list.Annotations = map[string]string{v1alpha1.RecycledClassesAnnotation: "slow"}
		if class != "" {
			if err := r.write.Create(t.Context(), list); err != nil {
				t.Fatal(err)
			}
		}
		v, before := &corev1.PersistentVolume{}, false
		for range 2 {
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: volume}); err != nil {
				t.Fatal(err)
			}
			if err := r.live.Get(t.Context(), volume, v); err != nil {
				t.Fatal(err)
			}
			err := r.live.Get(t.Context(), client.ObjectKeyFromObject(list), list)
			isNoted := slices.Contains(listedClasses(list), key)
			if v.Spec.ClaimRef == nil && !before {
				t.Errorf("class %q: the volume is given back before its class is noted", class)
			}
			if before = err == nil && isNoted; !before {
				t.Errorf("class %q: noted are %v (%v)", class, listedClasses(list), err)
			}
		}
		isKept := slices.Contains(listedClasses(list), "slow")
		if v.Spec.ClaimRef != nil || isKept != (class != "") {
			t.Errorf("class %q: the volume names %v, and noted are %v", class, v.Spec.ClaimRef, listedClasses(list))
		}
	}
}

// TestPolicyReadsTheList checks that the policy reads the annotation that the recycler writes.
func TestPolicyReadsTheList(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/kubernetes/recycler/data-sources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"    name: " + v1alpha1.RecycledClasses + "\n",
		"params.metadata.?annotations[?'" + v1alpha1.RecycledClassesAnnotation + "'].orValue('').split(',')",
		"variables.class == '' ? '" + v1alpha1.NoClass + "' : variables.class"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the policy has no %q", want)
		}
	}
}

// TestClassThatIsNotNoted checks that an event says why a volume is not given back if its class cannot be noted, for
// example with the permissions of an earlier version.
func TestClassThatIsNotNoted(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, v1alpha1.RecycledClasses, errCut)
	r, volume, told := given(t, "fast", interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if _, ok := o.(*corev1.ServiceAccount); ok {
				return refusal
			}
			return c.Get(ctx, key, o, options...)
		},
	})
	for range 2 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: volume}); err == nil {
			t.Error("the look succeeds")
		}
	}
	if len(told) != 1 {
		t.Fatalf("there are %d events, want 1", len(told))
	}
	text := <-told
	if !strings.HasPrefix(text, "Warning ClassNotNoted ") || !strings.Contains(text, `"fast"`) ||
		!strings.Contains(text, refusal.Error()) {
		t.Error(text)
	}
}

// TestClassWithAComma checks that a class that the list cannot have is not written there, with each look once more, and
// that its volume is not given back: the policy would not keep clones and restores from it.
func TestClassWithAComma(t *testing.T) {
	r, volume, told := given(t, "fast", interceptor.Funcs{})
	v := &corev1.PersistentVolume{}
	if err := r.live.Get(t.Context(), volume, v); err != nil {
		t.Fatal(err)
	}
	metav1.SetMetaDataAnnotation(&v.ObjectMeta, corev1.BetaStorageClassAnnotation, "fast,slow")
	if err := r.write.Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: volume}); !errors.Is(err, errComma) {
			t.Errorf("the look ends with %v, want %v", err, errComma)
		}
	}
	list, err := r.classes(t.Context())
	if err != nil || list != nil && len(listedClasses(list)) > 0 {
		t.Errorf("noted are %v (%v), want none", list, err)
	}
	if err := r.live.Get(t.Context(), volume, v); err != nil || v.Spec.ClaimRef == nil {
		t.Errorf("the volume is given back (%v)", err)
	}
	if len(told) != 1 {
		t.Fatalf("there are %d events, want 1", len(told))
	}
	if text := <-told; !strings.HasPrefix(text, "Warning ClassNotNoted ") || !strings.Contains(text, `"fast,slow"`) {
		t.Error(text)
	}
}

// TestScrubThatWaits checks that one event says what a volume waits for after its scrub has begun, if the wait is not
// short: for a node that is gone for good a person must act. A running scrub causes no event.
func TestScrubThatWaits(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: ownNamespace, Name: "scrub", UID: "scrub-uid",
		Labels: map[string]string{v1alpha1.RecyclingAnnotation: "v-uid"}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta,
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	pod := func(node string, phase corev1.PodPhase, deleted bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
		if p.Finalizers = []string{v1alpha1.RecyclerFinalizer}; deleted {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		return p
	}
	name := "v"
	attached := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: storagev1.VolumeAttachmentSpec{
		NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name},
	}}
	for name, c := range map[string]struct {
		state   state
		policy  corev1.PersistentVolumeReclaimPolicy
		objects []client.Object
		words   string // of the only event; empty for none
	}{
		"its node is lost": {failed, corev1.PersistentVolumeReclaimRetain, []client.Object{pod("node", "", true)},
			"Normal RecycleWaits the pod recycler/scrub has been deleted, and the kubelet of node does not say"},
		"it is clean, and still attached": {clean, corev1.PersistentVolumeReclaimRetain, []client.Object{attached},
			"Normal RecycleWaits the volume is still attached to node"},
		"it failed, and is still attached": {failed, corev1.PersistentVolumeReclaimRetain, []client.Object{attached},
			"Normal RecycleWaits the volume is still attached to node"},
		"no node takes the pod": {scrubbing, corev1.PersistentVolumeReclaimRetain,
			[]client.Object{claim, pod("", corev1.PodPending, false)},
			"Normal RecycleWaits the scrub pod recycler/scrub is on no"},
		"it works": {scrubbing, corev1.PersistentVolumeReclaimRetain,
			[]client.Object{claim, pod("node", corev1.PodRunning, false)}, ""},
		"another policy meanwhile": {scrubbing, corev1.PersistentVolumeReclaimDelete, nil, "Warning RecycleRefused "},
	} {
		r, v, told := telling(t, record{Name: "scrub", State: c.state, Claim: "scrub-uid", Failures: 1}, interceptor.Funcs{},
			c.objects...)
		now := time.Unix(1000, 0)
		r.memory.now = func() time.Time { return now }
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ownNamespace, Name: "scrub", UID: "scrub-uid"}
		v.Spec.PersistentVolumeReclaimPolicy = c.policy
		if err := r.write.Update(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		var events []string
		for range 4 {
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(v)}); err != nil {
				t.Fatal(err)
			}
			isEarly, isRefused := now.Unix() == 1000, c.policy == corev1.PersistentVolumeReclaimDelete
			if isEarly && !isRefused && len(told) > 0 {
				t.Errorf("%s: it is told at once", name)
			}
			for len(told) > 0 {
				events = append(events, <-told)
			}
			now = now.Add(course)
		}
		isRight := len(events) == 1 && strings.HasPrefix(events[0], c.words) || c.words == "" && len(events) == 0
		if !isRight {
			t.Errorf("%s: told are %q, want one of %q", name, events, c.words)
		}
	}
}

// TestWaitIsToldAgain checks that the event of a long wait is repeated before the API server deletes it, which it does
// after an hour.
func TestWaitIsToldAgain(t *testing.T) {
	name := "v"
	attached := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: storagev1.VolumeAttachmentSpec{
		NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name},
	}}
	r, v, told := telling(t, record{Name: "scrub", State: scrubbing}, interceptor.Funcs{}, attached)
	now := time.Unix(1000, 0)
	r.memory.now = func() time.Time { return now }
	for hour := range 3 {
		for range 60 {
			waitsFor(t, r, v.Name)
			now = now.Add(time.Minute)
		}
		if number := len(told); number != 2*(hour+1) {
			t.Errorf("after %d hours there are %d events", hour+1, number)
		}
	}
}

// TestStoppedAndResumed checks that stopping a volume's recycling in the middle of a scrub and resuming it later costs
// no attempt.
func TestStoppedAndResumed(t *testing.T) {
	r, v, told := telling(t, record{Name: "scrub", State: scrubbing, Claim: "scrub-uid"}, interceptor.Funcs{})
	names := 0
	r.newName = func() string { names++; return fmt.Sprint("next-", names) }
	now := time.Unix(1000, 0)
	r.memory.now = func() time.Time { return now }
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ownNamespace, Name: "scrub", UID: "scrub-uid"}
	for _, isWanted := range []bool{false, true} {
		if delete(v.Annotations, v1alpha1.RecycleAnnotation); isWanted {
			metav1.SetMetaDataAnnotation(&v.ObjectMeta, v1alpha1.RecycleAnnotation, "true")
		}
		if err := r.write.Update(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(v)})
			if err != nil {
				t.Fatal(err)
			}
			now = now.Add(r.Delay)
		}
		if err := r.live.Get(t.Context(), client.ObjectKeyFromObject(v), v); err != nil {
			t.Fatal(err)
		}
	}
	one, err := readRecord(v)
	if err != nil || one == nil || one.Name != "next-1" || one.State != scrubbing || one.Failures > 0 {
		t.Errorf("resumed, the record is %+v (%v), want that of a new scrub", one, err)
	}
	for len(told) > 0 {
		if text := <-told; strings.Contains(text, "ScrubFailed") {
			t.Error(text)
		}
	}
}
