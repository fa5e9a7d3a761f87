package volumeset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// gold sets the VolumeAttributesClass of a set's template.
func gold(set *v1alpha1.PersistentVolumeSet) {
	set.Spec.Template.Spec.VolumeAttributesClassName = "gold"
}

func attributesClass(driver string, parameters map[string]string) *storagev1.VolumeAttributesClass {
	return &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}, DriverName: driver,
		Parameters: parameters}
}

// TestTemplateWithAttributes checks that the driver gets the parameters of the template's VolumeAttributesClass and its
// mount options, and that the PersistentVolume has the options and names the class, so that claims of that class bind
// to it.
func TestTemplateWithAttributes(t *testing.T) {
	class, mutable := fast(), map[string]string{"iops": "4000"}
	class.MountOptions = []string{"discard"}
	for _, own := range [][]string{{"noatime"}, nil} {
		set := stored(gold, func(set *v1alpha1.PersistentVolumeSet) { set.Spec.Template.Spec.MountOptions = own })
		r, driver := bench(t, interceptor.Funcs{}, set, class, attributesClass("driver", mutable))
		set = r.look(t)
		if len(set.Status.Slots) != 2 || len(set.Status.Orders) != 1 {
			t.Fatalf("the set has %+v", set.Status)
		}
		name := set.Status.Slots[0].Name
		if _, err := r.filler.attempt(t.Context(), slotKey{set: "set", slot: name}); err != nil {
			t.Fatal(err)
		}
		want := own
		if want == nil {
			want = class.MountOptions
		}
		if !slices.Equal(driver.asked.MountOptions, want) || !maps.Equal(driver.asked.Mutable, mutable) {
			t.Errorf("the driver was asked for %+v, want the options %q", driver.asked, want)
		}
		v := &corev1.PersistentVolume{}
		if err := r.client.Get(t.Context(), client.ObjectKey{Name: name}, v); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(v.Spec.MountOptions, want) || ptr.Deref(v.Spec.VolumeAttributesClassName, "") != "gold" {
			t.Errorf("the PersistentVolume has %+v, want the options %q", v.Spec, want)
		}
	}
}

// TestAttributesThatAreOfNoUse checks that a set with an unusable VolumeAttributesClass creates nothing, says why, and
// is reconciled again.
func TestAttributesThatAreOfNoUse(t *testing.T) {
	old := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
		options ...client.GetOption) error {
		if _, ok := o.(*storagev1.VolumeAttributesClass); ok {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "VolumeAttributesClass"}}
		}
		return c.Get(ctx, key, o, options...)
	}}
	for name, test := range map[string]struct {
		calls   interceptor.Funcs
		objects []client.Object
		words   string
	}{
		"missing": {words: `"gold" of the template does not exist`},
		"unread":  {calls: unread(new(int)), words: `"gold" of the template could not be read`},
		"too old": {calls: old, words: "1.34 or later"},
		"others'": {objects: []client.Object{attributesClass("other", nil)}, words: "of the driver other"},
		"a claim's": {objects: []client.Object{attributesClass("driver", map[string]string{"tag": "of={{.PVCName}}"})},
			words: `"tag" of VolumeAttributesClass gold`},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := bench(t, test.calls, append(test.objects, stored(gold), fast())...)
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "set"}})
			if err != nil || result.RequeueAfter != recheck {
				t.Errorf("it is looked at again after %v: %v", result.RequeueAfter, err)
			}
			set := r.look(t)
			if len(set.Status.Slots) > 0 || reason(set) != reasonAttributesUnusable ||
				!strings.Contains(set.Status.Conditions[0].Message, test.words) {
				t.Errorf("the set has %+v", set.Status)
			}
		})
	}
}

// unread makes reads of VolumeAttributesClasses fail, and counts them.
func unread(tries *int) interceptor.Funcs {
	return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
		options ...client.GetOption) error {
		if _, ok := o.(*storagev1.VolumeAttributesClass); ok {
			*tries++
			return apierrors.NewInternalError(fmt.Errorf("attempt %d", *tries))
		}
		return c.Get(ctx, key, o, options...)
	}}
}

// TestAttributesAreReadToCreate checks that the VolumeAttributesClass is only read to create volumes, not for another
// driver's set or a full set, and that other work continues if it cannot be read.
func TestAttributesAreReadToCreate(t *testing.T) {
	another := fast()
	another.Provisioner = "another"
	full := stored(gold, func(set *v1alpha1.PersistentVolumeSet) { set.Spec.MinimumReplicas = 0 })
	for name, objects := range map[string][]client.Object{
		"another driver's": {stored(gold), another}, "a full set's": {full, fast()},
	} {
		tries := 0
		r, _ := bench(t, unread(&tries), objects...)
		if r.look(t); tries > 0 {
			t.Errorf("%s class of attributes is read %d times", name, tries)
		}
	}
	tries := 0
	set := stored(gold, making("x"))
	r, _ := bench(t, unread(&tries), set, fast(), described(t, set, "x:available")[0])
	if _, err := r.filler.attempt(t.Context(), slotKey{set: "set", slot: "x"}); err != nil {
		t.Fatal(err)
	}
	first := r.look(t)
	if len(first.Status.Slots) > 0 || reason(first) != reasonAttributesUnusable || tries == 0 {
		t.Errorf("after %d tries the status is %+v", tries, first.Status)
	}
	if now := r.look(t); now.ResourceVersion != first.ResourceVersion {
		t.Errorf("the status is written again: %+v", now.Status.Conditions)
	}
}

// TestOtherAttributesAreUnfit checks that a volume of another VolumeAttributesClass is not counted as ready: no claim
// of the template's class binds to it.
func TestOtherAttributesAreUnfit(t *testing.T) {
	for class, wanted := range map[string]bool{"gold": true, "silver": false, "": false} {
		set := newSet(1, 1, gold)
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
		v.Status.Phase, v.Spec.StorageClassName = corev1.VolumeAvailable, "fast"
		v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: set.Spec.Template.Spec.Capacity}
		if class != "" {
			v.Spec.VolumeAttributesClassName = &class
		}
		if c := count(set, []*corev1.PersistentVolume{v}); (c.ready == 1) != wanted || c.total != 1 {
			t.Errorf("a volume of class %q counts as %+v", class, c)
		}
	}
}
