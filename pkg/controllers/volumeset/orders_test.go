package volumeset

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// TestLargeTemplate checks that a set whose template has 200 KiB of annotations fits into etcd, which accepts 1.5 MiB,
// even if the template changes while slots are open.
func TestLargeTemplate(t *testing.T) {
	large := func(set *v1alpha1.PersistentVolumeSet, number int) {
		set.Spec.Template.Metadata.Annotations = map[string]string{"text": strings.Repeat(fmt.Sprint(number%10), 200<<10)}
	}
	r, _ := bench(t, interceptor.Funcs{}, fast(), stored(func(set *v1alpha1.PersistentVolumeSet) {
		set.Spec.MinimumReplicas, set.Spec.MaximumReplicas = 16, 200
		large(set, 0)
	}))
	r.slots = 16
	for i := range 5 {
		set := r.look(t)
		if i == 0 && len(set.Status.Slots) != 16 {
			t.Fatalf("%d slots were written", len(set.Status.Slots))
		}
		text, err := json.Marshal(set)
		if err != nil || len(text) > 1<<20 {
			t.Errorf("after %d changes the set has %d bytes and %d slots (%v)", i, len(text), len(set.Status.Slots), err)
		}
		for _, slot := range set.Status.Slots {
			r.filler.refused(slotKey{"set", slot.Name}, false, false, 0) // None of them ever ends.
		}
		large(set, i+1)
		if err := r.client.Update(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	if set := r.look(t); reason(set) != "TooLarge" {
		t.Errorf("the set is %s", reason(set))
	}
}

// TestSlotOfBefore checks that a slot with its own template and class, written by an earlier version, is requested with
// these.
func TestSlotOfBefore(t *testing.T) {
	set := stored(func(set *v1alpha1.PersistentVolumeSet) {
		template := set.Spec.Template
		template.Spec.Capacity = resource.MustParse("7Gi")
		set.Status.Slots = []v1alpha1.VolumeSlot{{Name: "x", Manager: "another", Template: &template,
			Class: &v1alpha1.SlotClass{FSType: "xfs"}}}
	})
	r, _ := bench(t, interceptor.Funcs{}, fast(), set)
	got := r.look(t)
	order, err := orderOf(got, got.Status.Slots[0])
	if err != nil || order.Template.Spec.Capacity.String() != "7Gi" || order.Class.FSType != "xfs" ||
		got.Status.Slots[0].Template != nil {
		t.Errorf("%v; the status is %+v", err, got.Status)
	}
}

// TestOrderThatLostAField checks that no volume is created from an order that lost a field to a manager or CRD of
// another version.
func TestOrderThatLostAField(t *testing.T) {
	set := stored()
	order := newOrder(set.Spec.Template, v1alpha1.SlotClass{MutableParameters: map[string]string{"iops": "9000"}})
	order.Class.MutableParameters = nil
	set.Status.Orders = []v1alpha1.VolumeOrder{order}
	if _, err := orderOf(set, v1alpha1.VolumeSlot{Name: "x", Order: order.Name}); err == nil ||
		!strings.Contains(err.Error(), "another version") {
		t.Errorf("the order is taken, or refused for another reason: %v", err)
	}
}
