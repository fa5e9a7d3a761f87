package nodestorage

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// again is the pause after another writer was first.
const again = 100 * time.Millisecond

// byNode is the index of PersistentVolumes of found volumes.
const byNode = "node"

// reconciler manages the storage of nodes.
type reconciler struct {
	Options
	cache  client.Reader
	live   client.Reader // bypasses the cache
	write  client.Client
	events events.EventRecorder
	now    func() time.Time // has a monotonic part

	mu sync.Mutex
	// births holds the PersistentVolumes that this process must create, by node.
	births map[string]map[string]birth
	// gone holds the time since which a node is gone.
	gone map[string]time.Time
	// asked holds the time since which a worker has not begun a request, by node, and deletion or offer.
	asked map[string]map[string]time.Time
	// told holds the problems that were reported, by node.
	told map[string]map[problemKey]bool
}

func newReconciler(o Options, cache, live client.Reader, write client.Client,
	recorder events.EventRecorder) *reconciler {
	return &reconciler{
		Options: o, cache: cache, live: live, write: write, events: recorder, now: time.Now,
		births: map[string]map[string]birth{}, gone: map[string]time.Time{},
		asked: map[string]map[string]time.Time{}, told: map[string]map[problemKey]bool{},
	}
}

// Reconcile reconciles one node. The NodeStorage has the node's name.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	v, wait, err := r.look(ctx, request.Name)
	if err != nil || v == nil {
		return ctrl.Result{RequeueAfter: wait}, ignoreRace(err)
	}
	a := plan(*v)
	for range 3 { // A new plan may need more reads.
		if len(a.ask) == 0 && !a.recheck && !a.count {
			break
		}
		if err := r.prove(ctx, v, a); err != nil {
			return ctrl.Result{RequeueAfter: again}, ignoreRace(err)
		}
		a = plan(*v)
	}
	r.seeAll(request.Name, v.volumes)
	r.expect(request.Name, untried, a.adopt...)
	err = r.carryOut(ctx, v, &a)
	silent, later := r.listen(v)
	r.tellOf(request.Name, append(a.told, silent...))
	if err != nil && ignoreRace(err) == nil {
		return ctrl.Result{RequeueAfter: again}, nil // The cache is behind.
	}
	return ctrl.Result{RequeueAfter: soonest(soonest(wait, later), v.untilRivalsAreGone())}, err
}

// ignoreRace returns nil for errors that report that another writer was first, or may have been.
func ignoreRace(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) ||
		errors.Is(err, errOldView) {
		return nil
	}
	return err
}

// look reads the objects of a node, and returns the time until the next check. The view is nil if there is nothing to
// decide.
func (r *reconciler) look(ctx context.Context, name string) (*view, time.Duration, error) {
	labels, wait, err := r.node(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	v := &view{
		storage: &v1alpha1.NodeStorage{}, labels: labels, isGone: labels == nil && wait == 0, rules: r.Rules,
		volumes: map[string]*corev1.PersistentVolume{}, proven: map[string]bool{}, births: r.birthsOf(name),
		hostname: hostnameOf(name, labels),
	}
	err = r.cache.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, v.storage)
	if apierrors.IsNotFound(err) {
		r.forget(name)
		return nil, 0, r.begin(ctx, name, labels)
	}
	if err != nil {
		return nil, 0, err
	}
	if v.storage.DeletionTimestamp == nil && !controllerutil.ContainsFinalizer(v.storage, v1alpha1.LocalVolumeFinalizer) {
		v.storage = v.storage.DeepCopy()
		controllerutil.AddFinalizer(v.storage, v1alpha1.LocalVolumeFinalizer)
		return nil, 0, r.write.Update(ctx, v.storage) // The update causes an event.
	}
	if err := r.volumes(ctx, v); err != nil {
		return nil, 0, err
	}
	return v, wait, r.classes(ctx, v)
}

// node returns the labels of a Node. Without a Node it returns nil and how long the node may still return. If the cache
// has no Node, node reads past it.
func (r *reconciler) node(ctx context.Context, name string) (map[string]string, time.Duration, error) {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	err := r.cache.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, client.ObjectKey{Name: name}, node)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		delete(r.gone, name)
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		return node.Labels, 0, nil
	}
	if !apierrors.IsNotFound(err) {
		return nil, 0, err
	}
	since, ok := r.gone[name]
	if !ok {
		since = r.now()
		r.gone[name] = since
	}
	return nil, max(0, r.NodeGoneAfter-r.now().Sub(since)), nil
}

// begin creates the NodeStorage of a node. A node that is gone or not selected also gets one while it has
// PersistentVolumes: nobody else removes our finalizer from them.
func (r *reconciler) begin(ctx context.Context, name string, nodeLabels map[string]string) error {
	if nodeLabels == nil || !r.Nodes.Matches(labels.Set(nodeLabels)) {
		var left corev1.PersistentVolumeList
		if err := r.cache.List(ctx, &left, client.MatchingFields{byNode: name}, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		if len(left.Items) == 0 {
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.gone, name)
			return nil
		}
	}
	return r.write.Create(ctx, &v1alpha1.NodeStorage{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.Namespace, Name: name, Finalizers: []string{v1alpha1.LocalVolumeFinalizer},
	}})
}

// volumes finds the node's PersistentVolumes. They belong to the cache and must not be changed.
func (r *reconciler) volumes(ctx context.Context, v *view) error {
	var list corev1.PersistentVolumeList
	if err := r.cache.List(ctx, &list, client.MatchingFields{byNode: v.storage.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		v.volumes[list.Items[i].Name] = &list.Items[i]
	}
	for _, o := range v.storage.Spec.Offers {
		if v.volumes[o.PersistentVolume] != nil {
			continue
		}
		pv := &corev1.PersistentVolume{} // Its annotations may have been changed.
		err := r.cache.Get(ctx, client.ObjectKey{Name: o.PersistentVolume}, pv)
		if err == nil {
			v.volumes[pv.Name] = pv
		} else if !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// classes reads the classes of found disks. An unusable class does not affect the others.
func (r *reconciler) classes(ctx context.Context, v *view) error {
	var list storagev1.StorageClassList
	if err := r.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	var wrong []problem
	for i := range list.Items {
		if !isOurs(&list.Items[i]) {
			continue
		}
		c, err := parse(&list.Items[i])
		if err == nil {
			v.classes = append(v.classes, c)
		} else {
			wrong = append(wrong, problem{&list.Items[i], "ClassUnusable", err.Error()})
		}
	}
	r.tellOf("", wrong)
	return nil
}

// prove reads past the cache the objects that a plan asks for.
func (r *reconciler) prove(ctx context.Context, v *view, a actions) error {
	for _, name := range a.ask {
		pv := &corev1.PersistentVolume{}
		err := r.live.Get(ctx, client.ObjectKey{Name: name}, pv)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		v.proven[name] = true
		if err == nil {
			v.volumes[name] = pv
		} else {
			delete(v.volumes, name)
		}
	}
	if a.count {
		if err := r.countRivals(ctx, v); err != nil {
			return err
		}
	}
	if !a.recheck {
		return nil
	}
	v.isFresh, v.readAt, v.storage = true, r.now(), &v1alpha1.NodeStorage{ObjectMeta: v.storage.ObjectMeta}
	return r.live.Get(ctx, client.ObjectKeyFromObject(v.storage), v.storage)
}
