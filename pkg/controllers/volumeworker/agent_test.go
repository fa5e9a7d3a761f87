package volumeworker

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// TestOrderOfALaterVersion checks that a worker does not begin an order whose spec has unknown fields, but carries out
// a deletion. Unknown metadata is ignored.
func TestOrderOfALaterVersion(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	o := &v1alpha1.LocalVolume{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lv"}}
	o.Spec.Order = v1alpha1.Order{Node: "node-1", Attempt: 1}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(o).WithStatusSubresource(o).Build()
	later := withField(api, "spec", "contentsOf")
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}
	driver := &removing{}
	worker := Volumes(Options{Node: "node-1", Namespace: "ns", Driver: driver}, later, api)
	_, err := worker.Reconcile(t.Context(), request)
	if err == nil || !strings.Contains(err.Error(), "older than the master") ||
		!strings.Contains(err.Error(), "contentsOf") {
		t.Errorf("it carries out a part of the order: %v", err)
	}
	if err := api.Get(t.Context(), request.NamespacedName, o); err != nil || o.Status.State != "" {
		t.Errorf("it has begun: %+v, %v", o.Status, err)
	}
	o.Spec.Attempt, o.Spec.Delete = 2, true
	if err := api.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	worker.live = withField(later, "metadata", "sharder")
	if _, err := worker.Reconcile(t.Context(), request); err != nil || !slices.Equal(driver.removed, []string{"lv"}) {
		t.Errorf("it was to remove lv, and has removed %v: %v", driver.removed, err)
	}
	if err := api.Get(t.Context(), request.NamespacedName, o); err != nil || o.Status.State != v1alpha1.StateDeleted {
		t.Errorf("its removal is not in the status: %+v, %v", o.Status, err)
	}
}

// withField adds a field to every object that is read.
func withField(api client.WithWatch, fields ...string) client.WithWatch {
	return interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if err := c.Get(ctx, key, o, options...); err != nil {
				return err
			}
			return unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "x", fields...)
		}})
}

// removing is a driver that only removes volumes.
type removing struct {
	Driver
	removed []string
}

func (d *removing) Delete(_ context.Context, handle string) error {
	d.removed = append(d.removed, handle)
	return nil
}

// TestBegins checks that an order is begun without the driver, which may be busy, and that an order of another node is
// not begun.
func TestBegins(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]v1alpha1.OrderState{"node-1": v1alpha1.StateWorking, "node-2": ""} {
		o := &v1alpha1.LocalVolume{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lv"}}
		o.Spec.Order = v1alpha1.Order{Node: node, Attempt: 1}
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(o).WithStatusSubresource(o).Build()
		begins := beginner[*v1alpha1.LocalVolume]{Volumes(Options{Node: "node-1", Namespace: "ns"}, api, api)}
		for range 2 {
			if _, err := begins.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.Status.State != want {
			t.Errorf("an order of %s is %q, want %q: %v", node, o.Status.State, want, err)
		}
	}
}
