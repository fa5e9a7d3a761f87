package volumeset

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// recheck is the interval at which a set with unusable classes is reconciled again. No event announces a new
// VolumeAttributesClass.
const recheck = 30 * time.Second

// reconciler brings sets closer to their specs.
type reconciler struct {
	client  client.Client
	live    client.Reader // bypasses the cache
	driver  Driver
	filler  *filler
	slots   int           // volumes of a set that are created concurrently
	patient time.Duration // how long surplus unbound volumes are kept
	now     func() time.Time
	name    func() string // of a new slot
	metrics *metrics
	failed  *undeleted // of the remover
	events  events.EventRecorder

	mu       sync.Mutex
	surplus  map[string]bearing  // of sets with a surplus
	refusals map[string]*refusal // of the API server, by set
}

// round is one reconciliation of a set: its observed state and the actions to take.
type round struct {
	set      *v1alpha1.PersistentVolumeSet
	class    *storagev1.StorageClass
	settings v1alpha1.SlotClass   // of the class
	order    v1alpha1.VolumeOrder // of new volumes
	volumes  []*corev1.PersistentVolume
	census   census
	isSure   bool                       // found is complete
	found    map[string]bool            // the classes of unbound volumes, from all reads
	strays   []*corev1.PersistentVolume // volumes that the set created and that were relabelled
	ended    map[string]bool            // the names of slots to remove
	actions  actions
	sites    []place       // of the volumes to be created
	unusable verdict       // why the class cannot be used
	problem  verdict       // why the set creates no volumes
	wait     time.Duration // until the next reconciliation, without an event
}

// Reconcile reconciles one set.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	set := &v1alpha1.PersistentVolumeSet{}
	err := r.client.Get(ctx, request.NamespacedName, set)
	if apierrors.IsNotFound(err) {
		r.bear(request.Name, false, 0)
		r.forgetRefusal(request.Name)
		r.filler.forget(request.Name)
		r.metrics.forget(request.Name)
	}
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	o := &round{set: set.DeepCopy(), found: map[string]bool{}}
	isUnserved := set.Status.Driver == "" && len(set.Status.Slots) == 0 // No driver was ever asked for anything.
	if set.DeletionTimestamp != nil && isUnserved {
		return ctrl.Result{}, r.release(ctx, o)
	}
	if err := r.readClass(ctx, o); err != nil {
		return ctrl.Result{}, err
	}
	if set.Status.Driver == "" && o.unusable.reason == reasonClassNotFound {
		return ctrl.Result{}, r.orphaned(ctx, o)
	}
	if !r.serves(o) {
		return ctrl.Result{}, nil
	}
	if set.DeletionTimestamp == nil && controllerutil.AddFinalizer(o.set, v1alpha1.VolumeSetFinalizer) {
		return ctrl.Result{}, r.client.Update(ctx, o.set) // The update comes back as an event.
	}
	err = r.settle(ctx, o)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, nil // The cache is behind.
	}
	return ctrl.Result{RequeueAfter: o.wait}, client.IgnoreNotFound(err)
}

// settle counts, plans, and carries out the plan. Irreversible actions are planned on live reads. The set may be newer
// than the volumes in the cache: a volume whose slot has been removed may then be in neither the slots nor the cache.
func (r *reconciler) settle(ctx context.Context, o *round) error {
	if err := r.count(ctx, o); err != nil {
		return err
	}
	if err := r.yield(ctx, o); err != nil {
		return err
	}
	o.heedStrays()
	if err := r.locate(ctx, o); err != nil {
		return err
	}
	r.order(ctx, o)
	r.measure(o)
	r.prove(ctx, o)
	if err := r.save(ctx, o); err != nil {
		return err
	}
	for _, slot := range o.set.Status.Slots {
		class, _ := classOf(o.set, slot)
		r.filler.fill(slotKey{set: o.set.Name, slot: slot.Name}, class)
	}
	if err := r.remove(ctx, o.actions.remove); err != nil {
		return err
	}
	if o.isOver() {
		return r.release(ctx, o)
	}
	return nil
}

// count surveys the volumes in the cache. It also surveys a live list if volumes are to be created or the set is to be
// released.
func (r *reconciler) count(ctx context.Context, o *round) error {
	volumes, err := r.cached(ctx, o.set)
	if err != nil {
		return err
	}
	if o.strays, err = r.strays(ctx, o.set); err != nil {
		return err
	}
	o.find(o.strays)
	if err := r.survey(ctx, o, volumes); err != nil {
		return err
	}
	if o.actions.create > 0 || o.isOver() {
		if volumes, err = volumesOf(ctx, r.live, o.set); err != nil {
			return err
		}
		if err := r.survey(ctx, o, volumes); err != nil {
			return err
		}
	}
	return r.reviewClasses(ctx, o)
}

// survey counts the volumes and plans.
func (r *reconciler) survey(ctx context.Context, o *round, volumes []*corev1.PersistentVolume) error {
	o.volumes = volumes
	o.find(volumes)
	o.census, o.ended = count(o.set, o.volumes), map[string]bool{}
	o.census.undeleted = r.failed.of(o.volumes)
	if err := r.conclude(ctx, o); err != nil {
		return err
	}
	if err := r.reconsider(ctx, o); err != nil {
		return err
	}
	r.plan(o)
	return nil
}

// isOver reports whether a set that is being deleted has nothing more to do.
func (o *round) isOver() bool {
	isLeft := func(slot v1alpha1.VolumeSlot) bool { return !o.ended[slot.Name] }
	return o.set.DeletionTimestamp != nil && !slices.ContainsFunc(o.set.Status.Slots, isLeft) &&
		len(o.actions.remove) == 0 && o.census.unseen == 0 && !o.isMarked()
}

// release removes the finalizer of a set that is being deleted.
func (r *reconciler) release(ctx context.Context, o *round) error {
	if !controllerutil.RemoveFinalizer(o.set, v1alpha1.VolumeSetFinalizer) {
		return nil
	}
	if err := r.client.Update(ctx, o.set); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.leave(o)
	return nil
}

// plan decides on the actions and on the time until the next reconciliation.
func (r *reconciler) plan(o *round) {
	due, wait := r.isDue(o.set.Name)
	o.actions, o.wait = plan(o.set, o.census, r.slots, due), wait
	if r.withdraw(o, o.actions.withdraw) {
		o.actions = plan(o.set, o.census, r.slots, due)
	}
	if r.bear(o.set.Name, o.actions.surplus, time.Duration(max(0, o.set.Status.SurplusSeconds))*time.Second) {
		if due, o.wait = r.isDue(o.set.Name); due { // Other managers kept it long enough: no event follows.
			o.actions = plan(o.set, o.census, r.slots, due)
		}
	}
	if o.problem = o.unusable; o.set.DeletionTimestamp != nil {
		o.problem = verdict{} // It no longer needs a class.
	}
	if o.problem.reason != "" {
		o.actions.create = 0
		o.lookAgain()
		return
	}
	if f := r.filler.failuresOf(o.set.Name).last(); f.err != nil {
		o.problem = verdict{reasonRefused, f.err.Error()}
	}
}

// lookAgain schedules another reconciliation soon, because no event announces the change that the set waits for.
func (o *round) lookAgain() {
	if o.wait == 0 || o.wait > recheck {
		o.wait = recheck
	}
}

// save writes the status: the census, and the slots of the volumes to create. The driver is asked only afterwards.
func (r *reconciler) save(ctx context.Context, o *round) error {
	before := o.set.Status.DeepCopy()
	s := &o.set.Status
	s.Driver = r.driver.Driver()
	s.Slots = slices.DeleteFunc(s.Slots, func(slot v1alpha1.VolumeSlot) bool { return o.ended[slot.Name] })
	r.takeOver(o.set)
	for _, where := range o.sites {
		addOrder(o.set, o.order)
		s.Slots = append(s.Slots, r.newSlot(o, where))
		o.census.slots, o.census.total = o.census.slots+1, o.census.total+1
	}
	tidyOrders(o.set)
	o.noteClasses()
	r.noteSurplus(o.set)
	s.RelabelledReplicas = int32(len(o.strays)) // The count fits into an int32.
	write(o.set, o.census, judge(o.set, o.census, o.problem))
	r.metrics.count(o.set)
	if equality.Semantic.DeepEqual(before, s) {
		return nil
	}
	classes := slices.Clone(s.Classes)
	if err := r.client.Status().Update(ctx, o.set); err != nil {
		return err
	}
	if o.set.DeletionTimestamp == nil || o.census.slots > 0 { // Otherwise it is about to go.
		r.announce(o.set, before.Conditions)
	}
	if err := isKept(o.set, classes); err != nil { // The driver is asked for nothing unless all of it was kept.
		return fmt.Errorf("%w; if the definition of PersistentVolumeSets is older than this manager, apply that of "+
			"its version (deploy/kubernetes/crds)", err)
	}
	return nil
}

// isKept checks that the API server has kept all fields of the slots and classes that were written.
func isKept(set *v1alpha1.PersistentVolumeSet, classes []string) error {
	if !slices.Equal(set.Status.Classes, classes) {
		return fmt.Errorf("the status has lost the classes %q, in which claims with a data source would be bound to empty"+
			" volumes", classes)
	}
	for _, slot := range set.Status.Slots {
		if _, err := orderOf(set, slot); err != nil {
			return err
		}
		if slot.Manager == "" {
			return fmt.Errorf("slot %s has lost its manager", slot.Name)
		}
	}
	return nil
}

// volumesOf returns the PersistentVolumes of a set. They may belong to the cache and must not be changed.
func volumesOf(
	ctx context.Context, from client.Reader, set *v1alpha1.PersistentVolumeSet, options ...client.ListOption,
) ([]*corev1.PersistentVolume, error) {
	var list corev1.PersistentVolumeList
	options = append(options, client.MatchingLabelsSelector{Selector: selector(set)}, client.UnsafeDisableDeepCopy)
	if err := from.List(ctx, &list, options...); err != nil {
		return nil, err
	}
	volumes := make([]*corev1.PersistentVolume, len(list.Items))
	for i := range list.Items {
		volumes[i] = &list.Items[i]
	}
	return volumes, nil
}

// nowhere returns the verdict for a class that allows none of the existing places.
func (r *reconciler) nowhere(o *round) verdict {
	return verdict{reasonNowhere,
		fmt.Sprintf("no node that runs the driver %s is in a place that the allowedTopologies of StorageClass %s allow",
			r.driver.Driver(), o.class.Name)}
}

// places returns the places where volumes of the class can be, or none for a driver without topology.
func (r *reconciler) places(ctx context.Context, class *storagev1.StorageClass) ([]place, error) {
	if !r.driver.HasTopology() {
		return nil, nil
	}
	var drivers storagev1.CSINodeList
	if err := r.client.List(ctx, &drivers, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	nodes := metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}}
	if err := r.client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	labels := make(map[string]map[string]string, len(nodes.Items))
	for _, node := range nodes.Items {
		labels[node.Name] = node.Labels
	}
	return places(r.driver.Driver(), drivers.Items, labels, class.AllowedTopologies), nil
}
