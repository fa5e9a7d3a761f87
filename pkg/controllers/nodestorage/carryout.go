package nodestorage

import (
	"context"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// carryOut carries a plan out, and adds to what people are told. Each write is made under the resource version that the
// plan saw. A refusal stops what is planned for its volume alone, and any other error ends the turn.
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
	for _, o := range a.create {
		if err := a.bear(v.storage, r.create(ctx, v, o)); err != nil {
			return err
		}
	}
	if !a.over || len(a.refused) > 0 {
		return errors.Join(a.refused...)
	}
	storage := v.storage.DeepCopy()
	controllerutil.RemoveFinalizer(storage, v1alpha1.LocalVolumeFinalizer)
	return r.write.Update(ctx, storage)
}

// save writes the spec, and remembers the offers that are new: their PersistentVolumes were never made.
func (r *reconciler) save(ctx context.Context, v *view, a *actions) error {
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
	if err := r.write.Update(ctx, storage); err != nil {
		return err
	}
	before := map[string]bool{}
	for _, o := range v.storage.Spec.Offers {
		before[o.PersistentVolume] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	unmade := map[string]bool{}
	for _, o := range a.spec.Offers {
		isNew := !before[o.PersistentVolume] && v.volumes[o.PersistentVolume] == nil
		unmade[o.PersistentVolume] = isNew || r.unmade[storage.Name][o.PersistentVolume]
	}
	r.unmade[storage.Name] = unmade
	return nil
}

// adopt remembers offers of other masters as if they were ours.
func (r *reconciler) adopt(node string, names []string) {
	if len(names) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	unmade := maps.Clone(r.unmade[node])
	if unmade == nil {
		unmade = map[string]bool{}
	}
	for _, name := range names {
		unmade[name] = true
	}
	r.unmade[node] = unmade
}

// create makes the PersistentVolume of an offer. Unless it was refused it may exist, now or soon, and what is absent
// later may hold data.
func (r *reconciler) create(ctx context.Context, v *view, o v1alpha1.VolumeOffer) error {
	err := r.write.Create(ctx, persistentVolume(v.storage.Name, v.hostname, o))
	if isRefusal(err) {
		return err
	}
	r.mu.Lock()
	delete(r.unmade[v.storage.Name], o.PersistentVolume)
	r.mu.Unlock()
	return err
}

func (r *reconciler) unmadeOf(node string) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.unmade[node])
}

func (r *reconciler) forget(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unmade, node)
	delete(r.told, node)
}

// problemKey tells problems from each other.
type problemKey struct{ kind, namespace, name, reason, message string }

// tellOf tells people of the problems of a node that they were not told before.
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
			r.events.Eventf(p.about, nil, corev1.EventTypeWarning, p.reason, "Offer", "%.1000s", p.message)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told[node] = now
}
