package nodestorage

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestUsedMeanwhile checks that a disk that is used after it was reported free gets no PersistentVolume, and that its
// offer is removed without a wipe.
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

// TestOfferOfAMasterThatDied checks that nothing is wiped if a master stops after it wrote offers and before the worker
// acknowledged them: the offers never had a PersistentVolume.
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

// TestFailedCreations checks that disks whose PersistentVolumes could not be created for a while, for example because
// of a webhook, are neither retained nor wiped.
func TestFailedCreations(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{
		corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete,
	} {
		t.Run(string(policy), func(t *testing.T) {
			s := newSimulation(t, 1, 0)
			s.reclaim(policy)
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
			s.checkOffered()
		})
	}
}

// TestLostAnswer checks that offers are not given up if the answer to their write is lost, and the worker acknowledges
// them before the master sees them: no process but this one has a reason to create their PersistentVolumes.
func TestLostAnswer(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{
		corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete,
	} {
		t.Run(string(policy), func(t *testing.T) {
			s := newSimulation(t, 1, 0)
			s.reclaim(policy)
			s.settle(0, 2)
			s.report()
			write := s.masters[0].write.(client.WithWatch)
			s.masters[0].write = interceptor.NewClient(write, interceptor.Funcs{
				Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
					return errors.Join(c.Update(ctx, o, options...), errCut)
				},
			})
			if err := s.try(1); !errors.Is(err, errCut) || len(s.storage().Spec.Offers) != disks {
				t.Fatalf("the offers are %+v, and their write ends with %v", s.storage().Spec.Offers, err)
			}
			s.masters[0].write = write
			s.report()
			s.settle(0, 3)
			s.checkOffered()
		})
	}
}

// TestNodeAwayMeanwhile checks that disks are neither retained nor wiped if their Node is missing for a moment before
// their PersistentVolumes are created: a node that returns finds all unchanged.
func TestNodeAwayMeanwhile(t *testing.T) {
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{
		corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete,
	} {
		t.Run(string(policy), func(t *testing.T) {
			s := newSimulation(t, 1, 0)
			s.reclaim(policy)
			s.settle(0, 2)
			s.report()
			s.settle(0, 2)
			s.report()
			name := metav1.ObjectMeta{Name: "node"}
			s.must(s.api.Delete(t.Context(), &corev1.Node{ObjectMeta: name}))
			s.settle(0, 3)
			s.must(s.api.Create(t.Context(), &corev1.Node{ObjectMeta: name}))
			s.settle(0, 3)
			s.checkOffered()
		})
	}
}

// reclaim sets the reclaim policy of the class.
func (s *simulation) reclaim(policy corev1.PersistentVolumeReclaimPolicy) {
	s.Helper()
	class := &storagev1.StorageClass{}
	s.must(s.api.Get(s.Context(), client.ObjectKey{Name: "disks"}, class))
	class.ReclaimPolicy = &policy
	s.must(s.api.Update(s.Context(), class))
}

// checkOffered checks that all disks have PersistentVolumes that claims can be bound to, and that none is retained or
// wiped.
func (s *simulation) checkOffered() {
	s.Helper()
	spec, usable := s.storage().Spec, 0
	for _, o := range spec.Offers {
		if o.Retained {
			s.Errorf("volume %s is retained", o.Volume)
		}
	}
	for _, pv := range s.all() {
		if pv.DeletionTimestamp == nil && pv.Spec.ClaimRef == nil {
			usable++
		}
	}
	if usable != disks || len(spec.DeleteOperations) > 0 {
		s.Errorf("%d volumes are offered, and %v are wiped: want all offered", usable, spec.DeleteOperations)
	}
}
