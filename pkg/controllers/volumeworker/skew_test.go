package volumeworker

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/pools"
)

// pooled is a driver that only has a pool.
type pooled struct{ Driver }

func (pooled) Pools(context.Context) ([]pools.Pool, error) {
	return []pools.Pool{{Name: "image", Type: "image", AvailableBytes: 1 << 30}}, nil
}

// strict returns a client as stowage-manager has it, of an API server whose CRDs lack a field of each status.
func strict(api client.WithWatch) client.Client {
	old := interceptor.NewClient(api, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client,
		_ string, o client.Object, options ...client.SubResourceUpdateOption) error {
		asked := (&client.SubResourceUpdateOptions{}).ApplyOptions(options)
		if asked.FieldValidation == metav1.FieldValidationStrict {
			return apierrors.NewBadRequest(`strict decoding error: unknown field "status.new"`)
		}
		return c.Status().Update(ctx, o)
	}})
	return client.WithFieldValidation(old, metav1.FieldValidationStrict)
}

// TestOlderDefinition checks that pools and uses are reported although a CRD of an earlier version does not have one of
// their fields, and that the result of an order is not: without a field it could mean something else.
func TestOlderDefinition(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	storage := &v1alpha1.NodeStorage{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "node-1"}}
	storages := fake.NewClientBuilder().WithScheme(scheme).WithObjects(storage).WithStatusSubresource(storage).Build()
	o := Options{Node: "node-1", Namespace: "ns", Driver: pooled{}, Timeout: time.Minute}
	if err := NewReporter(o, storages, strict(storages)).Report(t.Context(), true); err != nil {
		t.Errorf("the pools are not reported: %v", err)
	}
	if err := storages.Get(t.Context(), client.ObjectKeyFromObject(storage), storage); err != nil ||
		len(storage.Status.Pools) != 1 {
		t.Errorf("the pools are %+v, want one: %v", storage.Status.Pools, err)
	}

	volumes, volume := asking(t, "q")
	o.Driver = &using{}
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(volume)}
	if _, err := NewUseReporter(o, volumes, strict(volumes)).Reconcile(t.Context(), request); err != nil {
		t.Errorf("the use is not reported: %v", err)
	}
	if _, err := Volumes(o, volumes, strict(volumes)).Reconcile(t.Context(), request); !apierrors.IsBadRequest(err) {
		t.Errorf("the order is begun: %v", err)
	}
}
