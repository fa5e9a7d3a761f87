package nodestorage

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/printable"
)

// carryOut carries out a plan, and adds to the problems to report. Each write uses the resource version that the plan
// saw. A refusal stops only the plan for its volume, and any other error ends carryOut.
func (r *reconciler) carryOut(ctx context.Context, v *view, a *actions) error {
	if a.retire {
		return r.write.Delete(ctx, v.storage, client.Preconditions{UID: &v.storage.UID,
			ResourceVersion: &v.storage.ResourceVersion})
	}
	if err := r.change(ctx, v, a); err != nil {
		return err
	}
	if a.spec != nil {
		if err := r.save(ctx, v, a); err != nil {
			return err
		}
	}
	if err := r.createAll(ctx, v, a); err != nil {
		return err
	}
	if !a.over || len(a.refused) > 0 {
		return errors.Join(a.refused...)
	}
	storage := v.storage.DeepCopy()
	controllerutil.RemoveFinalizer(storage, v1alpha1.LocalVolumeFinalizer)
	return r.write.Update(ctx, storage)
}

// save writes the spec. It first remembers that the PersistentVolumes of its new offers never existed, for the spec may
// be written even if the write fails.
func (r *reconciler) save(ctx context.Context, v *view, a *actions) error {
	node, added := v.storage.Name, newVolumes(v, a.spec)
	r.limitBirths(node, &v.storage.Spec)
	r.expect(node, untried, added...)
	err := r.saveSpec(ctx, v, a)
	if isOfOne(err) {
		err = r.saveRest(ctx, v, a, err)
	}
	switch {
	case err == nil:
		r.expectOnly(node, a.spec)
	case isUnwritten(err):
		r.see(node, added...)
	}
	return err
}

func (r *reconciler) saveSpec(ctx context.Context, v *view, a *actions) error {
	storage := v.storage.DeepCopy()
	storage.Spec = *a.spec
	if a.reclaim != "" {
		metav1.SetMetaDataAnnotation(&storage.ObjectMeta, v1alpha1.ReclaimAnnotation, a.reclaim)
	} else {
		delete(storage.Annotations, v1alpha1.ReclaimAnnotation)
	}
	if a.pin != "" {
		metav1.SetMetaDataAnnotation(&storage.ObjectMeta, v1alpha1.HostnameAnnotation, a.pin)
	}
	return r.write.Update(ctx, storage)
}

// createAll creates PersistentVolumes.
func (r *reconciler) createAll(ctx context.Context, v *view, a *actions) error {
	for _, o := range a.create {
		if err := a.bear(v.storage, r.create(ctx, v, o)); err != nil {
			return err
		}
	}
	for _, o := range a.occupy {
		if err := a.bear(v.storage, r.occupy(ctx, v, o)); err != nil {
			return err
		}
	}
	return nil
}

// freshFor is how long PersistentVolumes may be created by one view. A master leads for at most 10 seconds after it has
// renewed its lease, and another one after 15 seconds at the earliest: no other master has led meanwhile.
const freshFor = 5 * time.Second

var errOldView = errors.New("the view is too old: another master may have offered the volume again")

// isOld reports whether a view is too old to create PersistentVolumes by: this process may have been stopped, or its
// writes were slow.
func (r *reconciler) isOld(v *view) bool { return r.now().Sub(v.readAt) > freshFor }

// create creates the PersistentVolume of an offer. Unless the creation is known to have failed, the object may exist
// now or soon. It is then created again under the same name until it is seen: giving up the name would wipe or retain
// the volume for no reason.
func (r *reconciler) create(ctx context.Context, v *view, o v1alpha1.VolumeOffer) error {
	if r.isOld(v) {
		return errOldView
	}
	node := v.storage.Name
	r.expect(node, uncertain, o.PersistentVolume)
	err := r.write.Create(ctx, persistentVolume(node, v.hostname, o))
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		r.see(node, o.PersistentVolume)
	case isRefusal(err):
		r.expect(node, v.births[o.PersistentVolume], o.PersistentVolume)
	}
	return err
}

// occupy creates the PersistentVolume of an offer for a claim that does not exist. Kubernetes calls it Released, so the
// master deletes it and has its volume wiped, as any other. A refusal counts only if the object is refused without that
// claim, too, as another master creates it.
func (r *reconciler) occupy(ctx context.Context, v *view, o v1alpha1.VolumeOffer) error {
	if r.isOld(v) {
		return errOldView
	}
	plain := persistentVolume(v.storage.Name, v.hostname, o)
	err := r.write.Create(ctx, reserved(plain, r.Namespace))
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		r.see(v.storage.Name, o.PersistentVolume)
	case isOfOne(err) && isOfOne(r.write.Create(ctx, plain, client.DryRunAll)):
		r.expect(v.storage.Name, barred, o.PersistentVolume)
	}
	return err
}

func (r *reconciler) forget(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.births, node)
	delete(r.asked, node)
	delete(r.told, node)
}

// problemKey identifies a problem.
type problemKey struct{ kind, namespace, name, reason, message string }

// tellOf records events about the problems of a node that were not reported before.
func (r *reconciler) tellOf(node string, all []problem) {
	now := map[problemKey]bool{}
	for _, p := range all {
		key := problemKey{p.about.GetObjectKind().GroupVersionKind().Kind, p.about.GetNamespace(), p.about.GetName(),
			p.reason, p.message}
		now[key] = true
		r.mu.Lock()
		isKnown := r.told[node][key]
		r.mu.Unlock()
		if !isKnown {
			r.events.Eventf(p.about, nil, corev1.EventTypeWarning, p.reason, "Offer", "%s", printable.Event(p.message))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[node] = now
}
