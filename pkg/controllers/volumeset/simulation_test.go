package volumeset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

func volumeOf(size int64) csiclient.Volume {
	return csiclient.Volume{Handle: "handle", SizeBytes: size}
}

// simulation is a set among claims that come and go, with a manager that sees all a little late.
type simulation struct {
	*testing.T
	*rand.Rand
	set  *v1alpha1.PersistentVolumeSet
	live map[string]*corev1.PersistentVolume
	late []*corev1.PersistentVolume // as the manager sees them
	next int
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	random := rand.New(rand.NewPCG(seed, 0))
	minimum := random.Int32N(5)
	return &simulation{T: t, Rand: random, set: newSet(minimum, minimum+random.Int32N(5)), live: map[string]*corev1.PersistentVolume{}}
}

func (s *simulation) run() {
	for range 200 {
		s.happen()
		if s.IntN(3) > 0 { // Else the manager sees what it saw before.
			s.see()
		}
		s.manage()
	}
	for range 50 { // Nothing happens any more.
		s.settle()
		s.see()
		s.manage()
	}
	c := count(s.set, s.late)
	if want := min(int(s.set.Spec.MinimumReplicas), max(c.ready, int(s.set.Spec.MaximumReplicas)-(c.total-c.ready))); c.ready < want {
		s.Errorf("at rest %d are ready, want %d: %+v", c.ready, want, c)
	}
}

// happen is what Kubernetes, the driver and people do.
func (s *simulation) happen() {
	for _, v := range s.sorted() {
		switch s.IntN(6) {
		case 0:
			if v.Status.Phase == corev1.VolumeAvailable && v.Spec.ClaimRef == nil && v.DeletionTimestamp == nil {
				v.Spec.ClaimRef = &corev1.ObjectReference{Name: "claim", UID: types.UID(v.Name)}
				s.changed(v)
			}
		case 1:
			if v.Status.Phase == corev1.VolumeBound && s.IntN(4) == 0 {
				delete(s.live, v.Name) // The claim is deleted, and csi-provisioner deletes the volume.
			}
		}
	}
	if s.IntN(40) == 0 {
		s.set.Spec.MaximumReplicas = s.set.Spec.MinimumReplicas + s.Int32N(5)
	}
	s.settle()
}

// settle lets what was begun go on.
func (s *simulation) settle() {
	for _, v := range s.sorted() {
		switch {
		case v.DeletionTimestamp != nil:
			if fate(v) == erase {
				delete(s.live, v.Name)
			}
		case v.Status.Phase == "":
			v.Status.Phase = corev1.VolumeAvailable
			s.changed(v)
		case v.Spec.ClaimRef != nil && v.Status.Phase == corev1.VolumeAvailable:
			v.Status.Phase = corev1.VolumeBound
			s.changed(v)
		}
	}
	for _, slot := range s.set.Status.Slots {
		if s.live[slot.Name] == nil && s.IntN(2) == 0 {
			s.live[slot.Name] = persistentVolume("driver", s.set, slot, volumeOf(1<<30))
			s.changed(s.live[slot.Name])
		}
	}
}

func (s *simulation) changed(v *corev1.PersistentVolume) {
	s.next++
	v.ResourceVersion = fmt.Sprint(s.next)
}

func (s *simulation) sorted() (all []*corev1.PersistentVolume) {
	for _, v := range s.live {
		all = append(all, v)
	}
	slices.SortFunc(all, bySize)
	return all
}

func (s *simulation) see() {
	s.late = nil
	for _, v := range s.sorted() {
		s.late = append(s.late, v.DeepCopy())
	}
}

// manage does what the reconciler does with a plan.
func (s *simulation) manage() {
	c := count(s.set, s.late)
	a := plan(s.set, c, 3, s.IntN(2) == 0)
	s.set.Status.Slots = slices.DeleteFunc(s.set.Status.Slots, func(slot v1alpha1.VolumeSlot) bool { return c.listed[slot.Name] })
	r := &reconciler{name: newName, filler: &filler{}}
	s.set.Status.Slots = r.newSlots(&round{set: s.set}, a.create, nil, nil)
	if all := s.total(); a.create > 0 && all > int(s.set.Spec.MaximumReplicas) {
		s.Fatalf("%d were created, and now there are %d of at most %d", a.create, all, s.set.Spec.MaximumReplicas)
	}
	for _, v := range a.remove {
		now := s.live[v.Name]
		if now == nil || now.ResourceVersion != v.ResourceVersion {
			continue // The API server refuses it.
		}
		if now.Spec.ClaimRef != nil {
			s.Fatalf("%s is bound, and was deleted", v.Name)
		}
		now.DeletionTimestamp = &metav1.Time{}
		s.changed(now)
	}
}

// total is the number of volumes that there are or will be.
func (s *simulation) total() int {
	all := len(s.live)
	for _, slot := range s.set.Status.Slots {
		if s.live[slot.Name] == nil {
			all++
		}
	}
	return all
}
