package volumeworker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// making is a driver that only creates volumes.
type making struct {
	Driver
	made int
}

func (d *making) Place(context.Context) (map[string]string, error) { return nil, nil }

func (d *making) Make(_ context.Context, w csiclient.Wanted) (csiclient.Volume, error) {
	d.made++
	return csiclient.Volume{Handle: "lv", SizeBytes: max(1, w.RequiredBytes)}, nil
}

// TestStoppedWorker checks that a worker that was stopped between its look at an order and the call to the driver looks
// again before it calls.
func TestStoppedWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, o := asking(t, "")
		stopped := interceptor.NewClient(api, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context,
			c client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption) error {
			time.Sleep(time.Minute) //nolint:forbidigo // Simulated time.
			return c.Status().Update(ctx, o)
		}})
		driver := &making{}
		worker := Volumes(Options{Node: "node-1", Namespace: "ns", Driver: driver, Timeout: time.Hour}, api, stopped)
		request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}
		if result, err := worker.Reconcile(t.Context(), request); err != nil || result.RequeueAfter == 0 || driver.made > 0 {
			t.Errorf("%d volumes are created, and it looks again in %v: %v", driver.made, result.RequeueAfter, err)
		}
		if _, err := worker.Reconcile(t.Context(), request); err != nil || driver.made != 1 {
			t.Errorf("when it has looked again %d volumes are created, want one: %v", driver.made, err)
		}
		if err := api.Get(t.Context(), request.NamespacedName, o); err != nil || o.Status.State != v1alpha1.StateReady {
			t.Errorf("the order is %+v, want it Ready: %v", o.Status, err)
		}
	})
}
