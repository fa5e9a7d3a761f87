package nodestorage

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// retain offers all disks under the policy Retain, and deletes their PersistentVolumes by hand. It returns the offers,
// whose volumes are retained.
func (s *simulation) retain() []v1alpha1.VolumeOffer {
	s.Helper()
	s.reclaim(corev1.PersistentVolumeReclaimRetain)
	for range 2 {
		s.settle(0, 2)
		s.report()
	}
	s.settle(0, 2)
	for _, pv := range s.all() {
		s.must(s.api.Delete(s.Context(), &pv))
	}
	for range 4 {
		s.happen(true)
		s.settle(0, 2)
	}
	offers := s.storage().Spec.Offers
	for _, o := range offers {
		if !o.Retained {
			s.Fatalf("the offer is %+v, want it retained", o)
		}
	}
	if left := len(s.all()); left > 0 || len(offers) != disks {
		s.Fatalf("%d PersistentVolumes and %d offers are left, want none and %d", left, len(offers), disks)
	}
	return offers
}

// TestReclaimTakesTheName checks that a master that lost its lease cannot create the PersistentVolume of a retained
// volume while that is wiped: a claim could be bound to it. After the wipe the volume is offered by another name.
func TestReclaimTakesTheName(t *testing.T) {
	s := newSimulation(t, 1, 0)
	offer := s.retain()[0]
	storage := s.storage()
	metav1.SetMetaDataAnnotation(&storage.ObjectMeta, v1alpha1.ReclaimAnnotation, string(offer.Volume))
	s.must(s.api.Update(t.Context(), storage))
	for range 4 {
		s.happen(true)
		s.settle(0, 2)
	}
	if wipes := s.storage().Spec.DeleteOperations; len(wipes) != 1 || wipes[0].Volume != offer.Volume {
		t.Fatalf("%+v are requested, want the wipe of %s", wipes, offer.Volume)
	}
	late := persistentVolume("node", "node", offer)
	if err := s.api.Create(t.Context(), late); !apierrors.IsAlreadyExists(err) {
		t.Errorf("during the wipe %s is created: %v", late.Name, err)
	}
	for range 4 {
		s.report()
		s.happen(true)
		s.settle(0, 2)
	}
	for _, o := range s.storage().Spec.Offers {
		if o.Volume == offer.Volume && (o.Retained || o.PersistentVolume == offer.PersistentVolume) {
			t.Errorf("after the wipe the offer is %+v, want another", o)
		}
	}
	if all := s.all(); len(all) != 1 || all[0].Annotations[v1alpha1.LocalVolumeAnnotation] != string(offer.Volume) {
		t.Errorf("after the wipe there are %d PersistentVolumes, want that of %s", len(all), offer.Volume)
	}
	if left := s.storage().Annotations[v1alpha1.ReclaimAnnotation]; left != "" {
		t.Errorf("the annotation is %q, want the name removed", left)
	}
}

// TestReclaimCalledOff checks that a retained volume stays as it is if its name is taken out of the annotation before
// the wipe is requested.
func TestReclaimCalledOff(t *testing.T) {
	s := newSimulation(t, 1, 0)
	offer := s.retain()[0]
	for _, wish := range []string{string(offer.Volume), ""} {
		storage := s.storage()
		metav1.SetMetaDataAnnotation(&storage.ObjectMeta, v1alpha1.ReclaimAnnotation, wish)
		s.must(s.api.Update(t.Context(), storage))
		s.settle(0, 2)
		if made := len(s.all()); made != 1 {
			t.Fatalf("with the annotation %q there are %d PersistentVolumes, want the one that takes the name", wish, made)
		}
	}
	for range 4 {
		s.happen(true)
		s.settle(0, 2)
	}
	spec := s.storage().Spec
	if left := len(s.all()); left > 0 || len(spec.DeleteOperations) > 0 || len(spec.Offers) != disks {
		t.Errorf("%d PersistentVolumes are left, and the spec is %+v: want the volumes retained as before", left, spec)
	}
}
