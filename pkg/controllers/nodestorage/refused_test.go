package nodestorage

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// refuse makes the first master's writes of the given form fail, as a policy does, for the first PersistentVolume that
// it writes in that form. All other writes pass.
func (s *simulation) refuse(form string) (victim func() string) {
	s.Helper()
	s.start(0)
	inner := s.masters[0].write.(client.WithWatch)
	var name string
	judge := func(is string, o client.Object, write func() error) error {
		_, isVolume := o.(*corev1.PersistentVolume)
		if is != form || !isVolume || name != "" && name != o.GetName() {
			return write()
		}
		name = o.GetName()
		return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumes"}, name, errCut)
	}
	s.masters[0].write = interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return judge("create", o, func() error { return c.Create(ctx, o, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return judge("update", o, func() error { return c.Update(ctx, o, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return judge("delete", o, func() error { return c.Delete(ctx, o, options...) })
		},
	})
	return func() string { return name }
}

// try updates the first master's cache and reconciles, turns times, and returns the last error.
func (s *simulation) try(turns int) (err error) {
	for range turns {
		s.see(0, 2)
		node := types.NamespacedName{Namespace: "ns", Name: "node"}
		_, err = s.masters[0].Reconcile(s.Context(), ctrl.Request{NamespacedName: node})
	}
	return err
}

// TestARefusalStopsNoOther checks a policy or webhook that refuses one form of write of one PersistentVolume: the
// node's other volumes proceed, an event reports the refusal, and the reconciliation fails.
func TestARefusalStopsNoOther(t *testing.T) {
	for _, form := range []string{"create", "delete", "update"} {
		t.Run(form, func(t *testing.T) {
			s := newSimulation(t, 1, 0)
			victim := s.refuse(form)
			left := 1
			for range 2 {
				s.try(2) //nolint:errcheck // Nothing is refused yet.
				s.report()
			}
			s.try(3) //nolint:errcheck // It is looked at below.
			if form == "create" {
				if got := len(s.all()); got != disks-1 {
					t.Fatalf("%d volumes are offered, want all but one of %d", got, disks)
				}
				left = 0
			}
			s.report()
			s.bind()
			s.try(3) //nolint:errcheck // So is this.
			s.report()
			err := s.try(2)
			all := s.all()
			if len(all) != left || left == 1 && all[0].Name != victim() {
				t.Errorf("%d PersistentVolumes are left, want %d, that of the refusal", len(all), left)
			}
			if err == nil || !strings.Contains(err.Error(), victim()) {
				t.Errorf("the turn ends with %v, want the refusal of %s", err, victim())
			}
			told := s.told()
			if strings.Count(told, "PersistentVolumeRefused") != 1 || !strings.Contains(told, victim()) {
				t.Errorf("people were told %q, want the refusal of %s once", told, victim())
			}
		})
	}
}

// TestARefusedFence checks that a disk whose PersistentVolume was removed by force is wiped even if a policy refuses
// the object that takes the name before the wipe.
func TestARefusedFence(t *testing.T) {
	s := newSimulation(t, 1, 0)
	s.offerAndLose()
	victim := s.refuse("create")
	for range 6 {
		s.happen(true)
		s.try(2) //nolint:errcheck // The first creation is refused.
	}
	if wipes := s.storage().Spec.DeleteOperations; victim() == "" || len(wipes) != disks {
		t.Errorf("%q was refused, and the wipes %+v are requested; want those of %d disks", victim(), wipes, disks)
	}
}

// TestARefusedFenceAlone checks that no disk is wiped while a policy refuses only the object that takes the name, since
// it names a claim. Another master's late creation of the usual object would succeed, and a claim be bound to a disk
// that is being wiped. An event reports the refusal.
func TestARefusedFenceAlone(t *testing.T) {
	s := newSimulation(t, 1, 0)
	for range 2 {
		s.settle(0, 2)
		s.report()
	}
	s.settle(0, 2)
	for _, pv := range s.all() {
		pv.Finalizers = nil
		s.must(s.api.Update(t.Context(), &pv))
		s.must(s.api.Delete(t.Context(), &pv))
	}
	s.start(0)
	fences, usual := 0, s.masters[0].write.(client.WithWatch)
	s.masters[0].write = interceptor.NewClient(usual, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if pv, is := o.(*corev1.PersistentVolume); is && pv.Spec.ClaimRef != nil {
				fences++
				return apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumes"}, pv.Name, errCut)
			}
			return c.Create(ctx, o, options...)
		},
	})
	for range 6 {
		s.happen(true)
		s.try(2) //nolint:errcheck // It is refused.
	}
	if wipes := s.storage().Spec.DeleteOperations; fences == 0 || len(wipes) > 0 || len(s.all()) > 0 {
		t.Errorf("after %d refusals the wipes %+v are requested, and there are %d PersistentVolumes, want none of either",
			fences, wipes, len(s.all()))
	}
	if told := s.told(); strings.Count(told, "PersistentVolumeRefused") != disks {
		t.Errorf("people were told %q, want the refusal of each of %d disks once", told, disks)
	}
	s.masters[0].write = usual
	s.try(1) //nolint:errcheck // It is looked at below.
	if got := len(s.all()); got != disks {
		t.Errorf("once it is allowed, the names of %d disks are taken, want %d", got, disks)
	}
}

// TestARefusedVolumeIsNotWiped checks that no wipe is requested for a volume whose second PersistentVolume cannot be
// deleted, since a claim may be bound to it, and that another volume's wipe is requested.
func TestARefusedVolumeIsNotWiped(t *testing.T) {
	s := newSimulation(t, 1, 0)
	s.settle(0, 2)
	s.report()
	s.settle(0, 3)
	s.refuse("delete")
	storage := s.storage()
	b, c := storage.Spec.Offers[0], storage.Spec.Offers[1]
	storage.Annotations = map[string]string{v1alpha1.ReclaimAnnotation: string(b.Volume)}
	s.must(s.api.Update(t.Context(), storage))
	late := persistentVolume("node", "node", b)
	a := actions{remove: []*corev1.PersistentVolume{late}, spec: storage.Spec.DeepCopy()}
	for i := range a.spec.Offers {
		a.spec.Offers[i].Retained = true
	}
	for _, o := range []v1alpha1.VolumeOffer{b, c} {
		a.spec.DeleteOperations = append(a.spec.DeleteOperations, v1alpha1.DeleteRequest{
			ID: v1alpha1.OperationID(o.PersistentVolume), Volume: o.Volume, Policy: v1alpha1.WipeZero})
	}
	if err := s.masters[0].carryOut(t.Context(), &view{storage: storage}, &a); !apierrors.IsForbidden(err) {
		t.Fatalf("the plan is carried out with %v, want the refusal", err)
	}
	got := s.storage()
	for _, o := range got.Spec.Offers {
		if o.Retained == (o.Volume == b.Volume) {
			t.Errorf("the offer of %s became %+v, want it as it was for %s alone", o.Volume, o, b.Volume)
		}
	}
	if all := got.Spec.DeleteOperations; len(all) != 1 || all[0].Volume != c.Volume {
		t.Errorf("the deletions are %+v, want that of %s alone", all, c.Volume)
	}
	if wish := got.Annotations[v1alpha1.ReclaimAnnotation]; wish != string(b.Volume) {
		t.Errorf("the annotation is %q, want the operator's wish to stay", wish)
	}
}
