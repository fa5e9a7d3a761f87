package nodestorage

import "testing"

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

// TestOfferOfAMasterThatDied has a master die after it wrote offers, and before the worker acknowledged them: they never
// had a PersistentVolume, and so nothing is wiped for them.
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
