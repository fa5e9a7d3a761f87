package nodestorage

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// define makes the API server validate specs as a CRD does: refuses reports whether a change of an offer is an error.
func (s *simulation) define(refuses func(before, after v1alpha1.VolumeOffer) bool) {
	inner := s.masters[0].write.(client.WithWatch)
	s.masters[0].write = interceptor.NewClient(inner, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			after, is := o.(*v1alpha1.NodeStorage)
			if !is {
				return c.Update(ctx, o, options...)
			}
			for _, b := range s.storage().Spec.Offers {
				for _, a := range after.Spec.Offers {
					if a.Volume == b.Volume && refuses(b, a) {
						return apierrors.NewInvalid(schema.GroupKind{Kind: "NodeStorage"}, "node", nil)
					}
				}
			}
			return c.Update(ctx, o, options...)
		},
	})
}

// TestOlderDefinition checks a CRD that is older than the master and does not allow an offer to become Retain: the
// volume whose PersistentVolume became Retain is left alone, an event says what to do, and the other volumes proceed.
func TestOlderDefinition(t *testing.T) {
	for name, c := range map[string]struct {
		refuses func(before, after v1alpha1.VolumeOffer) bool
		left    int // PersistentVolumes that are left
	}{
		"of the policy": {func(b, a v1alpha1.VolumeOffer) bool { return a.ReclaimPolicy != b.ReclaimPolicy }, 1},
		"of all":        {func(_, _ v1alpha1.VolumeOffer) bool { return true }, disks},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSimulation(t, 1, 0)
			for range 3 {
				s.settle(0, 2)
				s.report()
			}
			s.bind()
			kept := s.all()[0]
			kept.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			s.must(s.api.Update(t.Context(), &kept))
			s.define(c.refuses)
			var err error
			for range 3 {
				err = s.try(3)
				s.report()
			}
			if got := s.all(); len(got) != c.left || err == nil {
				t.Errorf("%d PersistentVolumes are left, want %d; the last turn ends with %v", len(got), c.left, err)
			}
			told := s.told()
			if strings.Count(told, "StorageRefused") != 1 || !strings.Contains(told, "deploy/kubernetes/crds") {
				t.Errorf("people were told %q, want the refusal once, and the way out", told)
			}
		})
	}
}
