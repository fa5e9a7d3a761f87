package volumeset

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// TestWebhookThatAltersVolumes checks that a set creates nothing if an admission webhook would alter its
// PersistentVolumes so that the set would not count them, or not know them, or find them unfit. It would create more
// and more.
func TestWebhookThatAltersVolumes(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(*corev1.PersistentVolume)
		says  string
	}{
		"nothing":      {func(*corev1.PersistentVolume) {}, ""},
		"a label more": {func(v *corev1.PersistentVolume) { v.Labels["team"] = "x" }, ""},
		"no labels":    {func(v *corev1.PersistentVolume) { v.Labels = nil }, "the set counts volumes with pool=a"},
		"another label": {func(v *corev1.PersistentVolume) { v.Labels["pool"] = "b" },
			`the labels map["pool":"b"], and the set counts volumes with pool=a`},
		"no annotations": {func(v *corev1.PersistentVolume) { v.Annotations = nil },
			`the set knows its volumes by "set-uid"`},
		"another class": {func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "slow" },
			"claims of the template could not use it"},
		"a smaller size": {func(v *corev1.PersistentVolume) {
			v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
		}, "claims of the template could not use it"},
	} {
		r, _ := bench(t, interceptor.Funcs{
			Create: func(ctx context.Context, api client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if v, ok := o.(*corev1.PersistentVolume); ok {
					c.alter(v)
				}
				return api.Create(ctx, o, options...)
			},
		}, stored(), fast())
		set := r.look(t)
		if isAltered := c.says != ""; (reason(set) == reasonAltered) != isAltered ||
			(len(set.Status.Slots) == 0) != isAltered || !strings.Contains(set.Status.Conditions[0].Message, c.says) {
			t.Errorf("%s: the set has %d slots and says %+v, want %q", name, len(set.Status.Slots), set.Status.Conditions,
				c.says)
		}
	}
}

// TestLabelsThatAreLost checks that a set creates at most as many volumes beside its unbound ones without its labels as
// its maximum: it does not count these. Those that claims have do not matter.
func TestLabelsThatAreLost(t *testing.T) {
	for words, want := range map[string]int{
		"a:available b:available":          0,
		"a:available b:fresh":              0,
		"a:available b:bound":              1,
		"a:available b:available:deleting": 1,
		"a:bound b:released":               2,
	} {
		set := stored(func(set *v1alpha1.PersistentVolumeSet) { set.Spec.MaximumReplicas = 2 })
		objects := []client.Object{set, fast()}
		for _, v := range described(t, set, words) {
			v.Labels = nil
			objects = append(objects, v)
		}
		r, _ := bench(t, interceptor.Funcs{}, objects...)
		now := r.look(t)
		if len(now.Status.Slots) != want || (reason(now) == reasonRelabelled) != (want == 0) {
			t.Errorf("beside %s there are %d slots, want %d: %+v", words, len(now.Status.Slots), want, now.Status.Conditions)
		}
		const says = "2 unbound volumes that the set created, such as a,"
		if want == 0 && !strings.Contains(now.Status.Conditions[0].Message, says) {
			t.Errorf("beside %s the set says %s", words, now.Status.Conditions[0].Message)
		}
	}
}
