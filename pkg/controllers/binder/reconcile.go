package binder

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	storage "k8s.io/component-helpers/storage/volume"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/printable"
)

// again is the pause after another writer was first.
const again = 50 * time.Millisecond

// takenAtMost limits the memory of taken volumes. That memory only avoids writes that would be refused.
const takenAtMost = 10000

// reconciler binds claims.
type reconciler struct {
	cache  client.Reader
	live   client.Reader // bypasses the cache
	write  writer
	driver string
	log    *slog.Logger
	events events.EventRecorder
	times  *times

	mu sync.Mutex
	// taken holds volumes that were written or are about to be, with their resource version before the write: the cache
	// may still show it.
	taken map[string]string
	// begun holds claims that were written into a volume, until the cache shows that they are bound.
	begun map[types.NamespacedName]intent
}

// intent is a volume that a claim was written into.
type intent struct {
	claim    types.UID
	volume   string
	finished bool // the whole binding is written
}

// Reconcile reconciles one claim.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	v := view{driver: r.driver, claim: &corev1.PersistentVolumeClaim{}}
	if err := r.cache.Get(ctx, request.NamespacedName, v.claim); err != nil {
		r.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := r.settle(ctx, &v)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // Another writer was first: read again.
		return ctrl.Result{RequeueAfter: again}, nil
	}
	return ctrl.Result{}, err
}

func (r *reconciler) settle(ctx context.Context, v *view) error {
	if err := r.look(ctx, v); err != nil {
		return err
	}
	r.times.observe(v)
	switch {
	case v.claim.Status.Phase == corev1.ClaimBound:
		r.forget(client.ObjectKeyFromObject(v.claim))
	case r.hasFinished(v.claim):
		return nil // The cache is behind. Another write would be refused.
	case v.claim.Spec.VolumeName == "":
		if err := r.recall(ctx, v); err != nil {
			return err
		}
	}
	return r.do(ctx, v)
}

func (r *reconciler) do(ctx context.Context, v *view) error {
	a := r.plan(v)
	for _, one := range a.free {
		if err := r.write.free(ctx, one); err != nil {
			return err
		}
		text := fmt.Sprintf("the claim %s/%s was bound to %s meanwhile", v.claim.Namespace, v.claim.Name,
			v.claim.Spec.VolumeName) // A person may have written the name.
		r.events.Eventf(one, v.claim, corev1.EventTypeNormal, "BindingUndone", "Bind", "%s", printable.Event(text))
	}
	if a.begin != nil {
		named, err := r.write.begin(ctx, a.begin, v.claim)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			r.forget(client.ObjectKeyFromObject(v.claim)) // Nothing was written.
		}
		if err != nil {
			return err
		}
		a.finish = named
	}
	if a.finish == nil {
		return nil
	}
	if err := r.write.finish(ctx, a.finish, v.claim); err != nil {
		return err
	}
	r.finished(v.claim, a.finish.Name)
	r.log.Debug("bound", "namespace", v.claim.Namespace, "claim", v.claim.Name, "volume", a.finish.Name)
	return nil
}

// plan plans, and reserves the chosen volume against other claims.
func (r *reconciler) plan(v *view) actions {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.taken) > takenAtMost {
		clear(r.taken)
	}
	var others []*corev1.PersistentVolume
	for _, one := range v.others {
		if r.taken[one.Name] != one.ResourceVersion {
			others = append(others, one)
		}
	}
	v.others = others
	a := plan(*v)
	if a.begin != nil {
		r.taken[a.begin.Name] = a.begin.ResourceVersion
		r.begun[client.ObjectKeyFromObject(v.claim)] = intent{claim: v.claim.UID, volume: a.begin.Name}
	}
	return a
}

// recall reads past the cache a claim that was written into a volume before, and the volume: the cache may show neither
// write.
func (r *reconciler) recall(ctx context.Context, v *view) error {
	key := client.ObjectKeyFromObject(v.claim)
	r.mu.Lock()
	before, ok := r.begun[key]
	r.mu.Unlock()
	if !ok {
		return nil
	}
	claim, volume := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}
	if err := r.live.Get(ctx, key, claim); err != nil {
		return err
	}
	v.claim = claim
	err := r.live.Get(ctx, client.ObjectKey{Name: before.volume}, volume)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	isNamed := err == nil && volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID == claim.UID
	if before.claim != claim.UID || !isNamed {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.begun, key)
		delete(r.taken, before.volume)
		return nil
	}
	v.named = []*corev1.PersistentVolume{volume}
	return nil
}

// finished remembers a claim with a written binding until the cache shows it.
func (r *reconciler) finished(claim *corev1.PersistentVolumeClaim, volume string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun[client.ObjectKeyFromObject(claim)] = intent{claim: claim.UID, volume: volume, finished: true}
}

func (r *reconciler) hasFinished(claim *corev1.PersistentVolumeClaim) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.begun[client.ObjectKeyFromObject(claim)]
	return before.finished && before.claim == claim.UID
}

func (r *reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.begun, key)
}

// look reads the data for a decision about the claim.
func (r *reconciler) look(ctx context.Context, v *view) error {
	name := storage.GetPersistentVolumeClaimClass(v.claim)
	class := &storagev1.StorageClass{}
	if err := r.cache.Get(ctx, client.ObjectKey{Name: name}, class); err != nil {
		return client.IgnoreNotFound(err)
	}
	v.class = class
	var sets v1alpha1.PersistentVolumeSetList
	if err := r.cache.List(ctx, &sets, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range sets.Items {
		v.pooled = v.pooled || sets.Items[i].Spec.Template.Spec.StorageClassName == name
	}
	if !v.pooled {
		return nil
	}
	var err error
	if v.named, err = r.volumes(ctx, byClaim, v.claim.Namespace+"/"+v.claim.Name); err != nil ||
		v.claim.Spec.VolumeName != "" {
		return err
	}
	if v.others, err = r.volumes(ctx, ready, name); err != nil {
		return err
	}
	return r.nodes(ctx, v)
}

// volumes returns the volumes with this value in the index. They belong to the cache and must be copied before a
// change.
func (r *reconciler) volumes(ctx context.Context, index, value string) (all []*corev1.PersistentVolume, err error) {
	var list corev1.PersistentVolumeList
	if err := r.cache.List(ctx, &list, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}

func (r *reconciler) nodes(ctx context.Context, v *view) error {
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.cache.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range nodes.Items {
		v.nodes = append(v.nodes, nodes.Items[i].Labels)
	}
	return nil
}
