package volumeworker

import (
	"context"
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

// TestOrderOfALaterVersion checks that a worker does not begin an order that says more than it knows.
func TestOrderOfALaterVersion(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	o := &v1alpha1.LocalVolume{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lv"}}
	o.Spec.Order = v1alpha1.Order{Node: "node-1", Attempt: 1}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(o).WithStatusSubresource(o).Build()
	later := interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if err := c.Get(ctx, key, o, options...); err != nil {
				return err
			}
			return unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, "x", "spec", "contentsOf")
		}})
	worker := Volumes(Options{Node: "node-1", Namespace: "ns"}, later, api) // Without a driver, which it would ask.
	_, err := worker.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
	if err == nil || !strings.Contains(err.Error(), "older than the master") ||
		!strings.Contains(err.Error(), "contentsOf") {
		t.Errorf("it carries out a part of the order: %v", err)
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.Status.State != "" {
		t.Errorf("it has begun: %+v, %v", o.Status, err)
	}
}
