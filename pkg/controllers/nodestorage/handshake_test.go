package nodestorage

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestUsedMeanwhile has somebody use a disk between the report that it is free and its offer: it gets no
// PersistentVolume, and the offer goes without a wipe.
func TestUsedMeanwhile(t *testing.T) {
	s := newSimulation(t, 1, 0)
	s.settle(0, 2)
	s.report()
	s.used = "disk-1"
	for range 3 {
		s.settle(0, 2)
		s.check()
		s.report()
	}
	if got := len(s.all()); got != disks-1 {
		t.Errorf("%d volumes are offered, want all but the one that is used", got)
	}
	if spec := s.storage().Spec; len(spec.Offers) != disks-1 || len(spec.DeleteOperations) > 0 {
		t.Errorf("the spec is %+v, want the offers of the others, and nothing to be wiped", spec)
	}
}

// TestOfferOfAMasterThatDied has a master die after it wrote offers, and before the worker acknowledged them: they
// never had a PersistentVolume, and so nothing is wiped for them.
func TestOfferOfAMasterThatDied(t *testing.T) {
	s := newSimulation(t, 1, 0)
	s.settle(0, 2)
	s.report()
	s.settle(0, 1)
	s.start(0)
	s.settle(0, 2)
	if all := s.all(); len(all) > 0 {
		t.Fatalf("%d PersistentVolumes were made before the worker has looked", len(all))
	}
	s.report()
	s.settle(0, 2)
	if got := len(s.all()); got != disks || len(s.storage().Spec.DeleteOperations) > 0 {
		t.Errorf("%d volumes are offered, and %v are wiped: want all offered", got, s.storage().Spec.DeleteOperations)
	}
}

// TestFailedCreations has every creation of a PersistentVolume fail for a while, as where a webhook does not answer:
// disks of which nobody has ever had one are neither retained nor wiped for that.
func TestFailedCreations(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{
		corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete,
	} {
		t.Run(string(policy), func(t *testing.T) {
			s := newSimulation(t, 1, 0)
			class := &storagev1.StorageClass{}
			s.must(s.api.Get(t.Context(), client.ObjectKey{Name: "disks"}, class))
			class.ReclaimPolicy = &policy
			s.must(s.api.Update(t.Context(), class))
			for range 2 {
				s.settle(0, 2)
				s.report()
			}
			write := s.masters[0].write.(client.WithWatch)
			s.masters[0].write = interceptor.NewClient(write, interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return apierrors.NewInternalError(errCut)
				},
			})
			if err := s.try(5); !apierrors.IsInternalError(err) {
				t.Fatalf("creations fail with %v", err)
			}
			s.masters[0].write = write
			s.settle(0, 3)
			spec := s.storage().Spec
			for _, o := range spec.Offers {
				if o.Retained {
					t.Errorf("volume %s is retained", o.Volume)
				}
			}
			if got := len(s.all()); got != disks || len(spec.DeleteOperations) > 0 {
				t.Errorf("%d volumes are offered, and %v are wiped: want all offered", got, spec.DeleteOperations)
			}
		})
	}
}
