package localvolume

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// recycled returns an API server with a LocalVolume, and its PersistentVolume with a record of the recycler.
func recycled(t *testing.T, driver, record string) (client.WithWatch, *corev1.PersistentVolume) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	o := &v1alpha1.LocalVolume{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lv-1"}}
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "lv-1"}
	if record != "" {
		v.Annotations = map[string]string{v1alpha1.RecyclingAnnotation: record}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(o, v).Build(), v
}

// passOn passes on the question about the PersistentVolume, and returns the question that the LocalVolume bears.
func passOn(t *testing.T, api client.Client, cache client.Reader) (string, error) {
	t.Helper()
	q := NewQuestions(namespace, "local", cache, api, api)
	_, err := q.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "pv"}})
	o := &v1alpha1.LocalVolume{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "lv-1"}, o); err != nil {
		t.Fatal(err)
	}
	return o.Annotations[v1alpha1.UseQuestionAnnotation], err
}

func TestQuestions(t *testing.T) {
	for name, c := range map[string]struct{ driver, record, want string }{
		"of a scrub":        {"local", `{"name":"scrub-1","state":"Scrubbing"}`, "scrub-1/Scrubbing"},
		"after a scrub":     {"local", `{"name":"scrub-1","state":"Clean","claim":"uid"}`, "scrub-1/Clean"},
		"no scrub":          {"local", "", ""},
		"unreadable record": {"local", "{", ""},
		"another driver":    {"other", `{"name":"scrub-1","state":"Scrubbing"}`, ""},
	} {
		api, _ := recycled(t, c.driver, c.record)
		if have, err := passOn(t, api, api); err != nil || have != c.want {
			t.Errorf("%s: the question is %q, %v, want %q", name, have, err, c.want)
		}
	}
}

// TestQuestionOfAStaleCache checks that the newest question is passed on, whatever the cache has.
func TestQuestionOfAStaleCache(t *testing.T) {
	stale, _ := recycled(t, "local", `{"name":"scrub-1","state":"Scrubbing"}`)
	api, _ := recycled(t, "local", `{"name":"scrub-1","state":"Clean"}`)
	if have, err := passOn(t, api, stale); err != nil || have != "scrub-1/Clean" {
		t.Errorf("the question is %q, %v", have, err)
	}
}

// TestQuestionOfAnEarlierLeader checks that a master that has lost its lease replaces no newer question: it was stopped
// after it had read the PersistentVolume.
func TestQuestionOfAnEarlierLeader(t *testing.T) {
	api, v := recycled(t, "local", `{"name":"scrub-1","state":"Scrubbing"}`)
	late := interceptor.NewClient(api, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			v.Annotations[v1alpha1.RecyclingAnnotation] = `{"name":"scrub-2","state":"Scrubbing"}`
			if err := api.Update(ctx, v); err != nil {
				t.Error(err)
			}
			if have, err := passOn(t, api, api); err != nil || have != "scrub-2/Scrubbing" {
				t.Errorf("the leader's question is %q, %v", have, err)
			}
			return c.Update(ctx, o, options...)
		},
	})
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(v), v); err != nil {
		t.Fatal(err)
	}
	if have, err := passOn(t, late, api); err == nil || have != "scrub-2/Scrubbing" {
		t.Errorf("the question is %q, %v", have, err)
	}
}

// TestQuestionBeforeItsVolume checks that a question is not forgotten if the LocalVolume appears after the record: no
// event of a PersistentVolume tells of it.
func TestQuestionBeforeItsVolume(t *testing.T) {
	api, v := recycled(t, "local", `{"name":"scrub-1","state":"Scrubbing"}`)
	o := &v1alpha1.LocalVolume{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lv-1"}}
	if err := api.Delete(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	q := NewQuestions(namespace, "local", api, api, api)
	result, err := q.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(v)})
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("the next look is after %s, %v", result.RequeueAfter, err)
	}
	if err := api.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if have, err := passOn(t, api, api); err != nil || have != "scrub-1/Scrubbing" {
		t.Errorf("the question is %q, %v", have, err)
	}
}

// TestQuestionThatIsLost checks that a question is passed on again while it has no final answer: the annotation may be
// removed, and no event of the PersistentVolume tells of that. The recycler would wait without a limit.
func TestQuestionThatIsLost(t *testing.T) {
	const question = "scrub-1/Scrubbing"
	for name, c := range map[string]struct {
		use  *v1alpha1.VolumeUse
		asks bool
	}{
		"not answered":        {nil, true},
		"another is answered": {&v1alpha1.VolumeUse{Question: "scrub-0/Scrubbing"}, true},
		"in use":              {&v1alpha1.VolumeUse{Question: question, InUse: true}, true},
		"not in use":          {&v1alpha1.VolumeUse{Question: question}, false},
	} {
		api, v := recycled(t, "local", `{"name":"scrub-1","state":"Scrubbing"}`)
		if have, err := passOn(t, api, api); err != nil || have != question {
			t.Fatalf("%s: the question is %q, %v", name, have, err)
		}
		o := &v1alpha1.LocalVolume{}
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "lv-1"}, o); err != nil {
			t.Fatal(err)
		}
		if o.Status.Use = c.use; api.Update(t.Context(), o) != nil {
			t.Fatalf("%s: it could not be written", name)
		}
		q := NewQuestions(namespace, "local", api, api, api)
		result, err := q.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(v)})
		if err != nil || (result.RequeueAfter > 0) != c.asks {
			t.Errorf("%s: the next look is after %s, %v", name, result.RequeueAfter, err)
		}
		delete(o.Annotations, v1alpha1.UseQuestionAnnotation)
		if err := api.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if have, err := passOn(t, api, api); err != nil || (have == question) != c.asks {
			t.Errorf("%s, and removed: the question is %q, %v", name, have, err)
		}
	}
}
