package volumeset

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient/csiclienttest"
)

// nodesIn returns nodes with the driver, one in each zone.
func nodesIn(zones ...string) (all []client.Object) {
	for _, zone := range zones {
		driver := storagev1.CSINodeDriver{Name: "driver", NodeID: zone, TopologyKeys: []string{"zone"}}
		all = append(all,
			&metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
				ObjectMeta: metav1.ObjectMeta{Name: zone, Labels: map[string]string{"zone": zone}},
			},
			&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: zone},
				Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{driver}}})
	}
	return all
}

// full is a driver without room in some zones.
type full struct {
	*talker
	zones []string
}

func (d full) Create(_ context.Context, r csiclient.Request) (csiclient.Volume, error) {
	if slices.Contains(d.zones, r.Segments["zone"]) {
		return csiclient.Volume{}, csiclienttest.Full()
	}
	return csiclient.Volume{Handle: r.Name, SizeBytes: r.SizeBytes, Places: []map[string]string{r.Segments}}, nil
}

// TestZoneWithoutRoom checks that the volumes for a full zone are created in another.
func TestZoneWithoutRoom(t *testing.T) {
	r, talks := bench(t, interceptor.Funcs{}, append(nodesIn("a", "b"), stored(), fast())...)
	talks.topology = true
	r.filler.driver = full{talks, []string{"a"}}
	set := r.look(t)
	for range 2 {
		for range set.Status.Slots {
			r.filler.next(t.Context())
		}
		set = r.look(t)
	}
	for range set.Status.Slots {
		r.filler.next(t.Context())
	}
	set = r.look(t)
	volumes, err := volumesOf(t.Context(), r.client, set)
	if err != nil || len(volumes) != 2 || len(set.Status.Slots) > 0 {
		t.Fatalf("%v; there are %d volumes and the slots %+v, want two volumes", err, len(volumes), set.Status.Slots)
	}
	for _, v := range volumes {
		if where := placeOf(v); !maps.Equal(where, place{"zone": "b"}) {
			t.Errorf("%s is in %v", v.Name, where)
		}
	}
}

// TestNodeThatIsGone checks that a slot for a place that is gone is replaced, and that a slot whose volume may exist
// there stays alongside its replacement.
func TestNodeThatIsGone(t *testing.T) {
	for _, isOpen := range []bool{false, true} {
		r, talks := bench(t, interceptor.Funcs{}, append(nodesIn("b"), fast(),
			stored(making("x"), func(set *v1alpha1.PersistentVolumeSet) {
				set.Spec.MinimumReplicas, set.Status.Slots[0].Segments = 1, map[string]string{"zone": "a"}
			}))...)
		talks.topology = true
		if isOpen {
			r.filler.ask(slotKey{"set", "x"})
		}
		want := map[string]int{"b": 1}
		if isOpen {
			want["a"] = 1
		}
		got := map[string]int{}
		for _, slot := range r.look(t).Status.Slots {
			got[slot.Segments["zone"]]++
		}
		if !maps.Equal(got, want) {
			t.Errorf("the volume was asked for: %t; there are slots in %v, want %v", isOpen, got, want)
		}
	}
}

// TestPlaceThatIsGone checks that a set stops reporting the failure of a place that no longer exists.
func TestPlaceThatIsGone(t *testing.T) {
	r, talks := bench(t, interceptor.Funcs{}, append(nodesIn("b", "c"), stored(), fast())...)
	talks.topology = true
	for _, zone := range []string{"a", "c"} {
		where := place{"zone": zone}
		end := outcome{asked: true, refused: true, place: where}
		r.filler.remember(slotKey{"set", zone}, r.now(), end, csiclienttest.Full())
	}
	r.look(t)
	if left := r.filler.failuresOf("set"); len(left) != 1 || left[place{"zone": "c"}.key()].slot != "c" {
		t.Errorf("what is known of places is %v, want that of zone c", left)
	}
}

// TestWithdrawal checks that a set that is deleted while its driver has no room goes, and that a set with a volume that
// may exist stays.
func TestWithdrawal(t *testing.T) {
	for name, c := range map[string]struct {
		answer  error
		manager string
		stays   bool
	}{
		"there is no room":                          {csiclienttest.Full(), "manager", false},
		"the driver was not asked":                  {nil, "manager", false},
		"there is no answer":                        {csiclienttest.Open()[0], "manager", true},
		"there is no room, says a second manager's": {csiclienttest.Full(), "another", true},
		"a second manager has it, and did not ask":  {nil, "another", true},
		"there is no volume, says the driver":       {csiclienttest.Absent(csiclienttest.Full()), "another", false},
		"there is no answer, but none can come":     {csiclienttest.Absent(csiclienttest.Open()[0]), "another", true},
	} {
		r, driver := bench(t, interceptor.Funcs{}, fast(),
			stored(leaving, making("x"), func(set *v1alpha1.PersistentVolumeSet) {
				set.Status.Driver, set.Status.Slots[0].Manager = "driver", c.manager
			}))
		if c.manager == "another" {
			r.look(t)
		}
		if driver.err = c.answer; c.answer != nil {
			r.filler.fill(slotKey{"set", "x"}, "fast")
			r.filler.next(t.Context())
		}
		if set := r.look(t); (set.Name != "") != c.stays {
			t.Errorf("%s: the set is %q, and its slots are %+v", name, set.Name, set.Status.Slots)
		}
		if got := driver.created; c.answer == nil && got > 0 {
			t.Errorf("%s: the driver was asked for %d volumes", name, got)
		}
	}
}

// TestBackOff checks which successes end the back-off after a refusal.
func TestBackOff(t *testing.T) {
	refusal := csiclienttest.Full()
	for name, c := range map[string]struct {
		slot  string
		begun int // seconds after the refusal
		end   outcome
		ends  bool
	}{
		"one that was begun before":            {"y", -1, outcome{made: true, first: true}, false},
		"one that was begun since":             {"y", 1, outcome{made: true, first: true}, true},
		"one that an earlier request had made": {"y", 1, outcome{made: true}, false},
		"the same slot":                        {"x", 1, outcome{made: true}, true},
		"one in another place": {"y", 1, outcome{made: true, first: true, place: place{"zone": "b"}},
			false},
	} {
		r, _ := bench(t, interceptor.Funcs{})
		r.filler.remember(slotKey{"set", "x"}, r.now(), outcome{asked: true, refused: true}, refusal)
		at := r.filler.failuresOf("set").last().at
		r.filler.remember(slotKey{"set", c.slot}, at.Add(time.Duration(c.begun)*time.Second), c.end, nil)
		if got := r.filler.failuresOf("set").last().err == nil; got != c.ends {
			t.Errorf("%s ends the back-off: %t, want %t", name, got, c.ends)
		}
	}
}

// TestLostAnswerToThePersistentVolume checks that a set stops reporting a failed creation once the volume exists, even
// if the answer to the creation of its PersistentVolume was lost.
func TestLostAnswerToThePersistentVolume(t *testing.T) {
	lost := true
	r, talks := bench(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			err := c.Create(ctx, o, options...)
			if _, ok := o.(*corev1.PersistentVolume); ok && len(options) == 0 && lost {
				lost = false
				return apierrors.NewTimeoutError("the answer is lost", 1)
			}
			return err
		},
	}, append(nodesIn("a"), fast(), stored(making("x"), func(set *v1alpha1.PersistentVolumeSet) {
		set.Spec.MinimumReplicas, set.Status.Slots[0].Segments = 1, map[string]string{"zone": "a"}
	}))...)
	talks.topology = true
	key := slotKey{"set", "x"}
	for _, fails := range []bool{true, false} {
		r.filler.fill(key, "fast")
		r.filler.queue.Add(key) // Skip the pause.
		r.filler.next(t.Context())
		if f := r.filler.failuresOf("set").last(); (f.err != nil) != fails {
			t.Errorf("the volume is there: %t, and the failure is %v", !fails, f.err)
		}
	}
	if talks.created != 1 {
		t.Errorf("the driver was asked %d times, want once", talks.created)
	}
}
