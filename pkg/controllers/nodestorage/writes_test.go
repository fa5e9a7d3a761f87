package nodestorage

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// settle updates a master's cache and reconciles, turns times.
func (s *simulation) settle(master, turns int) {
	s.Helper()
	for range turns {
		s.see(master, 2)
		_, err := s.masters[master].Reconcile(s.Context(),
			ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "node"}})
		s.must(err)
	}
}

// report lets the worker carry out all requests and report them.
func (s *simulation) report() {
	s.Helper()
	s.held = nil
	s.work() // learns of offers
	for _, r := range s.storage().Spec.DeleteOperations {
		for !s.wiped[r.ID] {
			s.wipe(r)
		}
	}
	s.held = nil
	s.work() // reads
	s.work() // writes
}

// bind binds each PersistentVolume to a claim, and releases it.
func (s *simulation) bind() {
	s.Helper()
	for _, pv := range s.all() {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "a", Name: "claim", UID: types.UID(pv.Name)}
		s.must(s.api.Update(s.Context(), &pv))
		s.dirty[v1alpha1.VolumeName(pv.Annotations[v1alpha1.LocalVolumeAnnotation])] = pv.Name
		s.phase(&pv, corev1.VolumeReleased)
	}
}

// offerAndLose has the first master offer all disks, and removes their PersistentVolumes by force.
func (s *simulation) offerAndLose() {
	s.Helper()
	for range 2 {
		s.settle(0, 2)
		s.report()
	}
	s.settle(0, 2)
	for _, pv := range s.all() {
		pv.Finalizers = nil
		s.must(s.api.Update(s.Context(), &pv))
		s.must(s.api.Delete(s.Context(), &pv))
	}
}

// TestWritesOfALife counts the master's writes from the first report of a node's disks until they can be offered again:
// three writes of each PersistentVolume, and three of the NodeStorage for all of them together.
func TestWritesOfALife(t *testing.T) {
	s := newSimulation(t, 1, 0)
	s.settle(0, 2)
	s.report()
	s.writes = 0
	s.settle(0, 2)
	s.report()
	s.settle(0, 2)
	if got := len(s.all()); got != disks || s.writes != disks+1 {
		t.Fatalf("%d volumes are offered after %d writes, want %d after %d", got, s.writes, disks, disks+1)
	}
	s.report()
	s.bind()
	s.settle(0, 3)
	s.report()
	s.settle(0, 2)
	if got := len(s.all()); got != 0 || s.writes != 3*disks+3 {
		t.Errorf("%d PersistentVolumes are left after %d writes, want none after %d", got, s.writes, 3*disks+3)
	}
	if spec := s.storage().Spec; len(spec.Offers)+len(spec.DeleteOperations) > 0 {
		t.Errorf("at the end of all lives the spec is %+v", spec)
	}
}

// TestSteadyStateWritesNothing checks that a master writes nothing without changes.
func TestSteadyStateWritesNothing(t *testing.T) {
	s := newSimulation(t, 1, 0)
	for range 3 {
		s.settle(0, 2)
		s.report()
	}
	s.writes = 0
	s.settle(0, 5)
	s.settle(1, 5)
	if s.writes > 0 {
		t.Errorf("%d writes changed nothing", s.writes)
	}
}

// TestTwoMastersOneOffer checks two masters that decide on the same state: one master's write is refused, and each disk
// has one PersistentVolume.
func TestTwoMastersOneOffer(t *testing.T) {
	s := newSimulation(t, 1, 0)
	s.settle(0, 2)
	s.report()
	s.see(0, 2)
	s.see(1, 2)
	s.manage(0)
	s.manage(1)
	s.report()
	s.see(0, 2)
	s.see(1, 2)
	s.manage(0)
	s.manage(1)
	s.settle(1, 2)
	if got := len(s.all()); got != disks {
		t.Errorf("there are %d PersistentVolumes for %d disks", got, disks)
	}
}

// TestLateCreate checks a master that loses its lease after writing an offer, and creates the PersistentVolume when the
// other master has already requested a wipe of the disk, or has offered it again. During the wipe the name is taken, so
// that no claim is ever bound to the disk. Later no claim can be bound to the late PersistentVolume after the leader's
// next reconciliation, and the volume stays offered by the other.
func TestLateCreate(t *testing.T) {
	for when, isWiped := range map[string]bool{"wiping": false, "offered anew": true} {
		t.Run(when, func(t *testing.T) {
			s := newSimulation(t, 1, 0)
			s.settle(0, 2)
			s.report()
			var late []*corev1.PersistentVolume
			s.masters[0].write = interceptor.NewClient(s.api, interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					if pv, is := o.(*corev1.PersistentVolume); is {
						pv.UID = types.UID(fmt.Sprintf("00000000-0000-0000-1111-%012d", len(late)))
						late = append(late, pv)
					}
					return errCut
				},
			})
			s.settle(0, 1)
			s.report()
			s.try(1) //nolint:errcheck // It hangs.
			for range 6 {
				s.happen(true)
				s.settle(1, 2)
				if isWiped {
					s.report()
				}
			}
			if len(late) != 1 {
				t.Fatalf("%d creations hang, want one: the first ends the turn", len(late))
			}
			err := s.api.Create(t.Context(), late[0])
			if wipes := s.storage().Spec.DeleteOperations; isWiped {
				s.must(err)
			} else if len(wipes) != disks || !apierrors.IsAlreadyExists(err) {
				t.Fatalf("while %+v are requested, %s is created late: %v", wipes, late[0].Name, err)
			}
			s.settle(1, 1)
			s.check()
			for range 8 {
				s.happen(true)
				s.settle(1, 2)
				s.report()
			}
			usable := map[string]string{}
			for _, pv := range s.all() {
				isLate := pv.Name == late[0].Name
				if isLate && (pv.DeletionTimestamp == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.Name != nobody) {
					t.Errorf("a claim could be bound to %s, which came late", pv.Name)
				}
				if !isLate && pv.DeletionTimestamp == nil && pv.Spec.ClaimRef == nil {
					usable[pv.Annotations[v1alpha1.LocalVolumeAnnotation]] = pv.Name
				}
			}
			if len(usable) != disks {
				t.Errorf("at rest are offered %v, want %d disks", usable, disks)
			}
		})
	}
}

// TestReplacedByHand checks that no disk is wiped by the word of a cache that is behind: meanwhile its PersistentVolume
// was removed by force, and another of the same name is bound.
func TestReplacedByHand(t *testing.T) {
	s := newSimulation(t, 1, 0)
	for range 2 {
		s.settle(0, 2)
		s.report()
	}
	s.settle(0, 2)
	s.report()
	s.bind()
	s.settle(0, 1)
	s.see(0, 2)
	for _, pv := range s.all() {
		if pv.DeletionTimestamp == nil {
			t.Fatalf("%s is not being deleted", pv.Name)
		}
		again := persistentVolume("node", "node", v1alpha1.VolumeOffer{PersistentVolume: pv.Name,
			Volume: v1alpha1.VolumeName(pv.Annotations[v1alpha1.LocalVolumeAnnotation]), Path: pv.Spec.Local.Path})
		pv.Finalizers = nil
		s.must(client.IgnoreNotFound(s.api.Update(t.Context(), &pv)))
		again.UID = "by-hand"
		again.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "a", Name: "claim", UID: types.UID(pv.Name)}
		s.must(s.api.Create(t.Context(), again))
		s.phase(again, corev1.VolumeBound)
	}
	for range 2 {
		_, err := s.masters[0].Reconcile(t.Context(),
			ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "node"}})
		s.must(err)
	}
	if wipes := s.storage().Spec.DeleteOperations; len(wipes) > 0 || len(s.all()) != disks {
		t.Errorf("%+v are requested, of volumes that are bound", wipes)
	}
}

// TestRefusedVolume checks that one event reports each PersistentVolume that is refused repeatedly, and each other
// problem of the node.
func TestRefusedVolume(t *testing.T) {
	s := newSimulation(t, 1, 0)
	s.settle(0, 2)
	s.report()
	s.moved = "disk-0"
	s.report()
	recorder := events.NewFakeRecorder(100)
	s.masters[0].events = recorder
	s.masters[0].write = interceptor.NewClient(s.api, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewForbidden(schema.GroupResource{}, "pv", errCut)
		},
	})
	s.settle(0, 2)
	s.report()
	s.try(5) //nolint:errcheck // It is refused.
	told := map[string]int{}
	for len(recorder.Events) > 0 {
		told[strings.Fields(<-recorder.Events)[1]]++
	}
	if told["NotOffered"] != 1 || told["PersistentVolumeRefused"] != disks-1 {
		t.Errorf("people were told %v, want each once: of the path, and of each other volume", told)
	}
}

// TestLongWords checks that the API server accepts the event of a problem, whose text has parts of a node.
func TestLongWords(t *testing.T) {
	s := newSimulation(t, 1, 0)
	recorder := events.NewFakeRecorder(1)
	s.masters[0].events = recorder
	s.masters[0].tellOf("node-0", []problem{{&v1alpha1.NodeStorage{}, "NotOffered", strings.Repeat("é\x1b", 999)}})
	_, text, _ := strings.Cut(<-recorder.Events, " NotOffered ")
	if text == "" || len(text) > 1024 || strings.ContainsRune(text, '\x1b') {
		t.Errorf("the text has %d bytes, or a control character: %.40q", len(text), text)
	}
}
