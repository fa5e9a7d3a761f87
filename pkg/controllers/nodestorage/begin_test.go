package nodestorage

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStorageLostWithItsNode checks that the PersistentVolumes of a missing node end even if its NodeStorage is removed
// by force: nobody else removes their finalizer.
func TestStorageLostWithItsNode(t *testing.T) {
	s := newSimulation(t, 1, 0)
	for range 2 {
		s.settle(0, 2)
		s.report()
	}
	s.settle(0, 2)
	if got := len(s.all()); got != disks {
		t.Fatalf("%d volumes are offered, want %d", got, disks)
	}
	s.must(s.api.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}))
	storage := s.storage()
	storage.Finalizers = nil
	s.must(s.api.Update(t.Context(), storage))
	s.must(s.api.Delete(t.Context(), storage))
	at := time.Now()
	for range 3 {
		s.look(at)
	}
	if storage := s.storage(); storage == nil || len(storage.Spec.Offers) != disks || len(s.all()) != disks {
		t.Fatalf("while the node may return %d volumes are there, and the storage is %+v", len(s.all()), storage)
	}
	for range 8 {
		s.look(at.Add(2 * time.Hour))
		s.happen(true)
	}
	if left := s.all(); len(left) > 0 || s.storage() != nil {
		t.Errorf("of a node that is gone %d PersistentVolumes are left, and the storage %+v", len(left), s.storage())
	}
	s.look(at.Add(3 * time.Hour))
	if s.storage() != nil {
		t.Error("the storage of a node that is gone is made again")
	}
}
