package volumeset

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// TestClasses checks that a set names the classes in which it has unbound volumes or slots, independently of its
// current template, and that it drops a class only when neither is left there.
func TestClasses(t *testing.T) {
	isBehind := false
	calls := interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			o := (&client.ListOptions{}).ApplyOptions(options)
			if _, ok := into.(*corev1.PersistentVolumeList); ok && isBehind && o.FieldSelector != nil {
				return nil
			}
			return c.List(ctx, into, options...)
		},
	}
	set := stored(making("x"), func(set *v1alpha1.PersistentVolumeSet) {
		reordered(set, func(o *v1alpha1.VolumeOrder) { o.Template.Spec.StorageClassName = "former" })
	})
	all := described(t, set, "a:available:retain:slow b:bound:retain c:available:retain:slow")
	all[1].Spec.StorageClassName, all[2].Labels = "bound", nil // The set made it, and somebody relabelled it.
	r, _ := bench(t, calls, set, fast(), all[0], all[1], all[2])
	want := func(when string, classes ...string) {
		t.Helper()
		if now := r.look(t); !slices.Equal(now.Status.Classes, classes) {
			t.Errorf("%s the set names %q, want %q", when, now.Status.Classes, classes)
		}
	}
	want("with volumes and a slot of earlier templates", "fast", "former", "slow")
	isBehind = true
	want("while the cache shows none of them", "fast", "former", "slow")
	isBehind = false
	if err := r.client.Delete(t.Context(), all[0]); err != nil {
		t.Fatal(err)
	}
	want("with one that was relabelled", "fast", "former", "slow")
	if err := r.client.Delete(t.Context(), all[2]); err != nil {
		t.Fatal(err)
	}
	want("once they are gone", "fast", "former")
}

// TestClassesOfVolumesThatNameAClaim checks that a set names the class of a volume that names a claim until the volume
// is bound: it may lose the claim again, and is still empty.
func TestClassesOfVolumesThatNameAClaim(t *testing.T) {
	for words, want := range map[string][]string{
		"a:binding:retain:slow":  {"fast", "slow"},
		"a:reserved:retain:slow": {"fast", "slow"},
		"a:bound:retain:slow":    {"fast"},
		"a:released:retain:slow": {"fast"},
	} {
		set := stored(func(set *v1alpha1.PersistentVolumeSet) {
			set.Status.Driver, set.Status.Classes = "driver", []string{"fast", "slow"}
		})
		r, _ := bench(t, interceptor.Funcs{}, set, fast(), described(t, set, words)[0])
		if now := r.look(t); !slices.Equal(now.Status.Classes, want) {
			t.Errorf("with %s the set names %q, want %q", words, now.Status.Classes, want)
		}
	}
}

// TestClassesOfALostOrder checks that no class is dropped while the order of a slot is missing.
func TestClassesOfALostOrder(t *testing.T) {
	set := stored(making("x"), func(set *v1alpha1.PersistentVolumeSet) {
		set.Status.Orders, set.Status.Classes = nil, []string{"fast", "former"}
	})
	r, _ := bench(t, interceptor.Funcs{}, set, fast())
	o := &round{set: set, found: map[string]bool{}, ended: map[string]bool{}, isSure: true}
	if err := r.reviewClasses(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if o.noteClasses(); !slices.Equal(o.set.Status.Classes, []string{"fast", "former"}) {
		t.Errorf("the set names %q", o.set.Status.Classes)
	}
}

// TestOldAnnotation checks that the class of a volume is the one in the old annotation, as for Kubernetes, and that a
// template whose annotation names another class than its field creates nothing.
func TestOldAnnotation(t *testing.T) {
	for words, c := range map[string]struct {
		noted   string
		unbound int32
		classes []string
	}{
		"a:available:retain":      {"slow", 0, []string{"fast", "slow"}},
		"b:available:retain:slow": {"fast", 1, []string{"fast"}},
	} {
		set := stored()
		v := described(t, set, words)[0]
		v.Annotations[corev1.BetaStorageClassAnnotation] = c.noted
		r, _ := bench(t, interceptor.Funcs{}, set, fast(), v)
		if s := r.look(t).Status; s.UnboundReplicas != c.unbound || !slices.Equal(s.Classes, c.classes) {
			t.Errorf("with %s, noted as %s, %d volumes are unbound, want %d, and the set names %q, want %q", words, c.noted,
				s.UnboundReplicas, c.unbound, s.Classes, c.classes)
		}
	}
	note := func(class string) func(*v1alpha1.PersistentVolumeSet) {
		return func(set *v1alpha1.PersistentVolumeSet) {
			set.Spec.Template.Metadata.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: class}
		}
	}
	for class, isRefused := range map[string]bool{"slow": true, "": true, "fast": false} {
		r, _ := bench(t, interceptor.Funcs{}, fast(), stored(note(class)))
		set := r.look(t)
		if (reason(set) == reasonTemplate) != isRefused || (len(set.Status.Slots) == 0) != isRefused {
			t.Errorf("with the annotation %q the set has %d slots: %+v", class, len(set.Status.Slots), set.Status.Conditions)
		}
	}
	// An earlier manager has written the slot.
	now := func(set *v1alpha1.PersistentVolumeSet) { set.Spec.Template.Metadata.Annotations = nil }
	r, _ := bench(t, interceptor.Funcs{}, fast(), stored(note("former"), making("x"), now))
	if s := r.look(t).Status; !slices.Equal(s.Classes, []string{"fast", "former"}) {
		t.Errorf("with a slot of the class former the set names %q", s.Classes)
	}
}

// TestLostClasses checks that classes missing in the status are found again, including the class of a volume that the
// set's selector no longer matches.
func TestLostClasses(t *testing.T) {
	set := stored(func(set *v1alpha1.PersistentVolumeSet) { set.Status.Driver = "driver" })
	all := described(t, set, "a:available:retain:slow b:available:retain c:available:retain")
	all[0].Labels = nil // The set made it, and somebody relabelled it.
	r, _ := bench(t, interceptor.Funcs{}, set, fast(), all[0], all[1], all[2])
	o := &round{set: set, found: map[string]bool{}, ended: map[string]bool{}}
	if err := r.reviewClasses(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if o.noteClasses(); !slices.Equal(o.set.Status.Classes, []string{"fast", "slow"}) {
		t.Errorf("the set names %q", o.set.Status.Classes)
	}
}

// TestVolumesThatADeletedSetLeaves checks that an event names the classes in which a deleted set leaves unbound
// volumes, and no others.
func TestVolumesThatADeletedSetLeaves(t *testing.T) {
	long := strings.Repeat("slow\x1b", 300)
	for _, c := range []struct{ words, slow, says string }{
		{"a:available:retain b:available:retain:slow", "slow", `in one of their classes: ["fast" "slow"]`},
		{"a:available:retain:slow", long, `in one of their classes: ["slow\x1bslow`},
		{"a:bound:retain", "", ""},
	} {
		set := stored(leaving, func(set *v1alpha1.PersistentVolumeSet) { set.Status.Driver = "driver" })
		objects := []client.Object{set, fast()}
		for _, v := range described(t, set, c.words) {
			if v.Spec.StorageClassName == "slow" {
				v.Spec.StorageClassName = c.slow
			}
			objects = append(objects, v)
		}
		r, _ := bench(t, interceptor.Funcs{}, objects...)
		told := events.NewFakeRecorder(10)
		r.events = told
		if now := r.look(t); now.Name != "" {
			t.Errorf("%s: the set stays: %+v", c.words, now.Status)
		}
		got := ""
		if len(told.Events) > 0 {
			got = <-told.Events
		}
		text, isLeft := strings.CutPrefix(got, "Warning VolumesLeft ")
		if isLeft != (c.says != "") || !strings.Contains(text, c.says) || len(text) > 1024 || len(told.Events) > 0 {
			t.Errorf("%s: told is %q, want %q", c.words, got, c.says)
		}
	}
}
