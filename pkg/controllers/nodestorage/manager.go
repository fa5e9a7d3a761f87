package nodestorage

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// Options of the master of found disks.
type Options struct {
	Namespace     string // of the NodeStorages
	Rules         Rules
	Nodes         labels.Selector // nodes that get a NodeStorage
	NodeGoneAfter time.Duration   // after this time a missing node counts as gone
	Workers       int             // nodes that are reconciled concurrently
}

// Add adds the master of found disks to the controllers that m runs.
func Add(m ctrl.Manager, o Options) error {
	err := m.GetFieldIndexer().IndexField(context.Background(), &corev1.PersistentVolume{}, byNode, nodeOf)
	if err != nil {
		return err
	}
	r := newReconciler(o, m.GetClient(), m.GetAPIReader(), m.GetClient(), m.GetEventRecorder("stowage-master"))
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	return ctrl.NewControllerManagedBy(m).Named("nodestorage").For(&v1alpha1.NodeStorage{}).
		Watches(node, handler.EnqueueRequestsFromMapFunc(r.ofNode)).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(r.ofVolume)).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.ofClass)).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers}).Complete(r)
}

func nodeOf(object client.Object) []string {
	pv, ok := object.(*corev1.PersistentVolume)
	if !ok {
		return nil
	}
	if node, ok := isFound(pv); ok {
		return []string{node}
	}
	return nil
}

func (r *reconciler) request(node string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: r.Namespace, Name: node}}
}

func (r *reconciler) ofNode(_ context.Context, node client.Object) []reconcile.Request {
	return []reconcile.Request{r.request(node.GetName())}
}

// ofVolume returns the node of a PersistentVolume, and notes that the object exists: this event may be the only trace
// of it.
func (r *reconciler) ofVolume(_ context.Context, pv client.Object) (requests []reconcile.Request) {
	for _, node := range nodeOf(pv) {
		r.see(node, pv.GetName())
		requests = append(requests, r.request(node))
	}
	return requests
}

// ofClass returns every node: a new class may accept volumes of any.
func (r *reconciler) ofClass(ctx context.Context, class client.Object) (requests []reconcile.Request) {
	if c, ok := class.(*storagev1.StorageClass); !ok || !isOurs(c) {
		return nil
	}
	var all v1alpha1.NodeStorageList
	if err := r.cache.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil // The cache is closing.
	}
	for i := range all.Items {
		requests = append(requests, r.request(all.Items[i].Name))
	}
	return requests
}
