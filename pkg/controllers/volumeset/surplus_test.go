package volumeset

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// TestSurplusAndLeaders checks that a new leader does not restart the delay of a surplus.
func TestSurplusAndLeaders(t *testing.T) {
	set := stored(func(set *v1alpha1.PersistentVolumeSet) { set.Spec.MinimumReplicas = 1 })
	volumes := described(t, set, "a:available b:available c:available")
	first, driver := bench(t, interceptor.Funcs{}, set, fast(), volumes[0], volumes[1], volumes[2])
	clock := time.Unix(1_000_000, 0)
	api := first.client
	for leader := range 6 {
		r, _ := newParts(api, api, benchOptions(driver), &events.FakeRecorder{}, func(string) {})
		t.Cleanup(r.filler.queue.ShutDown)
		r.now, r.filler.identity = func() time.Time { return clock }, "manager"
		r.patient = 100 * time.Second
		for at := 0; at < 25; {
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "set"}})
			if err != nil {
				t.Fatal(err)
			}
			next := max(1, min(25-at, int(result.RequeueAfter/time.Second)))
			at, clock = at+next, clock.Add(time.Duration(next)*time.Second)
		}
		clock = clock.Add(-time.Hour) // The next leader has another clock.
		left, err := volumesOf(t.Context(), api, set)
		if err != nil {
			t.Fatal(err)
		}
		number := 0
		for _, v := range left {
			if v.DeletionTimestamp == nil {
				number++
			}
		}
		if leader < 3 && number != 3 || leader == 5 && number != 1 {
			t.Errorf("after %d leaders of 25 s there are %d volumes, and the delay is %s", leader+1, number, r.patient)
		}
	}
}

// TestSurplusThatIsDue checks that a manager deletes a surplus in its first reconciliation if the previous manager kept
// it long enough or its own delay is shorter: no event would trigger another.
func TestSurplusThatIsDue(t *testing.T) {
	set := stored(func(set *v1alpha1.PersistentVolumeSet) {
		set.Spec.MinimumReplicas, set.Status.SurplusSeconds = 1, 240
	})
	volumes := described(t, set, "a:available b:available c:available")
	r, _ := bench(t, interceptor.Funcs{}, set, fast(), volumes[0], volumes[1], volumes[2])
	r.look(t)
	left, err := volumesOf(t.Context(), r.client, set)
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	for _, v := range left {
		if v.DeletionTimestamp == nil {
			number++
		}
	}
	if number != 1 {
		t.Errorf("after the first look there are %d volumes, want 1: the surplus was borne for 240 s of %s", number,
			r.patient)
	}
}
