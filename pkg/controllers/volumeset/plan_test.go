package volumeset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// newSet returns a set with volumes of 1Gi.
func newSet(minimum, maximum int32, change ...func(*v1alpha1.PersistentVolumeSet)) *v1alpha1.PersistentVolumeSet {
	set := &v1alpha1.PersistentVolumeSet{ObjectMeta: metav1.ObjectMeta{Name: "set", UID: "set-uid"}}
	set.Spec = v1alpha1.PersistentVolumeSetSpec{
		MinimumReplicas: minimum, MaximumReplicas: maximum, Selector: map[string]v1alpha1.LabelValue{"pool": "a"},
		Template: v1alpha1.PersistentVolumeTemplate{Spec: v1alpha1.PersistentVolumeTemplateSpec{
			StorageClassName: "fast", Capacity: resource.MustParse("1Gi"),
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		}},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

func making(names ...string) func(*v1alpha1.PersistentVolumeSet) {
	return func(set *v1alpha1.PersistentVolumeSet) {
		for _, name := range names {
			order := newOrder(set.Spec.Template, v1alpha1.SlotClass{})
			addOrder(set, order)
			set.Status.Slots = append(set.Status.Slots, v1alpha1.VolumeSlot{Name: name, Manager: "manager", Order: order.Name})
		}
	}
}

// numbered returns the given number of names.
func numbered(number int) (names []string) {
	for i := range number {
		names = append(names, fmt.Sprint("n", i))
	}
	return names
}

// reordered changes the only order of a set, and its name.
func reordered(set *v1alpha1.PersistentVolumeSet, change func(*v1alpha1.VolumeOrder)) {
	order := &set.Status.Orders[0]
	change(order)
	order.Name = orderDigest(*order)
	for i := range set.Status.Slots {
		set.Status.Slots[i].Order = order.Name
	}
}

func leaving(set *v1alpha1.PersistentVolumeSet) {
	set.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}

// described returns PersistentVolumes for words such as "a:available", "b:bound:2Gi", "c:available:other".
func described(t *testing.T, set *v1alpha1.PersistentVolumeSet, words string) (all []*corev1.PersistentVolume) {
	t.Helper()
	for i, word := range strings.Fields(words) {
		parts := strings.Split(word, ":")
		pv := persistentVolume("driver", set, parts[0], newOrder(set.Spec.Template, v1alpha1.SlotClass{}), volumeOf(1<<30))
		pv.CreationTimestamp = metav1.Unix(int64(1000+i), 0)
		for _, what := range parts[1:] {
			describe(t, pv, what)
		}
		all = append(all, pv)
	}
	return all
}

func describe(t *testing.T, pv *corev1.PersistentVolume, what string) {
	t.Helper()
	switch what {
	case "fresh":
	case "available":
		pv.Status.Phase = corev1.VolumeAvailable
	case "bound":
		pv.Status.Phase, pv.Spec.ClaimRef = corev1.VolumeBound, &corev1.ObjectReference{Name: "claim"}
	case "binding": // It names a claim, and the phase follows later.
		pv.Status.Phase = corev1.VolumeAvailable
		pv.Spec.ClaimRef = &corev1.ObjectReference{Name: "claim", UID: "claim-uid"}
	case "reserved": // A person named a claim, which may not exist.
		pv.Status.Phase, pv.Spec.ClaimRef = corev1.VolumeAvailable, &corev1.ObjectReference{Name: "claim"}
	case "released":
		pv.Status.Phase, pv.Spec.ClaimRef = corev1.VolumeReleased, &corev1.ObjectReference{Name: "claim"}
	case "failed":
		pv.Status.Phase, pv.Spec.ClaimRef = corev1.VolumeFailed, &corev1.ObjectReference{Name: "claim"}
		pv.Status.Message = "it cannot be scrubbed"
	case "deleting":
		pv.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	case "outdated":
		pv.Annotations[v1alpha1.TemplateAnnotation] = "earlier"
	case "other": // made by hand
		pv.Annotations, pv.Finalizers = nil, nil
	case "foreign": // of another set with the same labels
		pv.Annotations[v1alpha1.VolumeSetAnnotation] = "another"
	case "retain":
		pv.Spec.PersistentVolumeReclaimPolicy, pv.Finalizers = corev1.PersistentVolumeReclaimRetain, nil
	case "recycle":
		pv.Annotations[v1alpha1.RecycleAnnotation] = "true"
	case "slow":
		pv.Spec.StorageClassName = "slow"
	case "block":
		pv.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	default:
		pv.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse(what)
	}
}

func TestPlan(t *testing.T) {
	for name, c := range map[string]struct {
		set     *v1alpha1.PersistentVolumeSet
		volumes string
		due     bool
		create  int
		remove  string
		give    int // slots
	}{
		"an empty set is filled":                     {set: newSet(3, 10), create: 3},
		"no more at a time than slots":               {set: newSet(9, 10), create: 4},
		"slots count as volumes":                     {set: newSet(3, 10, making("x", "y")), create: 1},
		"a slot whose volume exists counts once":     {set: newSet(3, 10, making("x")), volumes: "x:available", create: 2},
		"bound ones are replaced":                    {set: newSet(2, 10), volumes: "a:bound b:bound c:available", create: 1},
		"a claim on its way is a bound one":          {set: newSet(1, 10), volumes: "a:binding", create: 1},
		"never more than the maximum":                {set: newSet(5, 3), volumes: "a:bound b:bound", create: 1},
		"total < maximum, not <=":                    {set: newSet(5, 2), volumes: "a:bound b:bound"},
		"slots count against the maximum":            {set: newSet(5, 3, making("x", "y", "z"))},
		"released ones fill the set":                 {set: newSet(2, 2), volumes: "a:released b:failed"},
		"a volume being deleted fills it until gone": {set: newSet(2, 2), volumes: "a:deleting b:deleting"},
		"fresh ones need no successor":               {set: newSet(2, 10), volumes: "a:fresh b:available"},
		"hand-made ones count":                       {set: newSet(2, 10), volumes: "a:available:other b:available:other"},
		"more than the maximum: the largest goes": {set: newSet(0, 2),
			volumes: "a:available b:available:3Gi c:available:2Gi", remove: "b"},
		"the largest go first, bound ones never": {set: newSet(0, 1), volumes: "a:available b:bound:9Gi c:available:2Gi",
			remove: "c a"},
		"none goes when all are bound": {set: newSet(0, 1), volumes: "a:bound b:binding c:bound"},
		"retained ones stay": {set: newSet(0, 1),
			volumes: "a:available:retain:5Gi b:available c:available:retain", remove: "b"},
		"hand-made ones stay": {set: newSet(0, 1), volumes: "a:available:other:5Gi b:available",
			remove: "b"},
		"another set's volumes stay": {set: newSet(0, 1), volumes: "a:available:foreign:5Gi b:available",
			remove: "b"},
		"fresh ones stay until Kubernetes saw them": {set: newSet(0, 1), volumes: "a:fresh:9Gi b:available", remove: "b"},
		"a surplus is borne":                        {set: newSet(1, 9), volumes: "a:available b:available c:available:2Gi"},
		"and goes when it is due": {set: newSet(1, 9), volumes: "a:available b:available c:available:2Gi",
			due: true, remove: "c a"},
		"an outdated surplus goes at once": {set: newSet(1, 9), volumes: "a:available:outdated:1Gi b:available",
			remove: "a"},
		"outdated ones are replaced first": {set: newSet(2, 9),
			volumes: "a:available:outdated b:available:outdated", create: 2},
		"and go as successors come": {set: newSet(2, 9),
			volumes: "a:available:outdated b:available:outdated c:available d:fresh", remove: "a b"},
		"retained ones are replaced too": {set: newSet(2, 9), volumes: "a:available:outdated:retain b:available",
			create: 1},
		"and stay": {set: newSet(1, 9), volumes: "a:available:outdated:retain b:available",
			due: true},
		"those of another class are nobody's": {set: newSet(2, 9),
			volumes: "a:available:slow:other b:available:block:other", create: 2},
		"nor are smaller ones, larger ones are": {set: newSet(2, 9),
			volumes: "a:available:512Mi:other b:available:2Gi:other", create: 1},
		"one whose class was edited has a successor": {set: newSet(1, 9), volumes: "a:available:slow", create: 1},
		"so has one whose mode was":                  {set: newSet(1, 9), volumes: "a:available:block", create: 1},
		"those that the driver made too small":       {set: newSet(2, 9), volumes: "a:available:512Mi b:fresh:512Mi"},
		"and as many as are missing beside them": {set: newSet(3, 9), volumes: "a:available:512Mi b:available",
			create: 1},
		"they go with a deleted set": {set: newSet(2, 9, leaving), volumes: "a:available:512Mi", remove: "a"},
		"and for one of another template": {set: newSet(1, 9), volumes: "a:available:512Mi:outdated b:available",
			remove: "a"},
		"they count against the maximum": {set: newSet(2, 2),
			volumes: "a:available:slow:other b:available:block:other"},
		"outdated ones of another class go": {set: newSet(2, 9),
			volumes: "a:available:outdated:slow b:available c:available", remove: "a"},
		"but not before their successors are begun": {set: newSet(1, 9), volumes: "a:available:outdated:slow", create: 1},
		"a fresh outdated one costs no current one": {set: newSet(1, 9), volumes: "a:fresh:outdated b:available"},
		"in a full set one makes room": {set: newSet(2, 2),
			volumes: "a:available:outdated b:available:outdated", remove: "a"},
		"bound outdated ones stay": {set: newSet(0, 9), volumes: "a:bound:outdated"},
		"what is being deleted is not counted twice": {set: newSet(0, 2),
			volumes: "a:deleting b:available c:available d:available:2Gi", remove: "d"},
		"one makes room at a time": {set: newSet(2, 2), volumes: "a:deleting b:available:outdated"},
		"a bound one that is deleted by hand stays": {set: newSet(2, 3),
			volumes: "a:bound:deleting b:available:outdated c:available:outdated", remove: "b"},
		"a volume that was recycled is unbound": {set: newSet(2, 9), volumes: "a:available:retain b:bound", create: 1},
		"one that is being recycled is not": {set: newSet(2, 9), volumes: "a:bound:retain b:released:retain",
			create: 2},
		"for recycled ones others go": {set: newSet(1, 9), volumes: "a:available:retain:5Gi b:available",
			due: true, remove: "b"},
		"but not before it is due": {set: newSet(1, 9), volumes: "a:available:retain b:available"},
		"a surplus of recycled ones stays": {set: newSet(1, 9), volumes: "a:available:retain b:available:retain",
			due: true},
		"a deleted set gives up the unbound ones": {set: newSet(3, 9, leaving),
			volumes: "a:available b:bound c:available:retain d:released", remove: "a"},
		"a deleted set creates none":       {set: newSet(3, 9, leaving)},
		"and gives its slots up":           {set: newSet(3, 9, leaving, making("x", "y")), give: 2},
		"so does one with a lower minimum": {set: newSet(1, 9, making("x", "y", "z")), give: 2},
		"or with enough volumes": {set: newSet(2, 9, making("x")), volumes: "a:available b:available",
			give: 1},
		"or with a lower maximum": {set: newSet(2, 2, making("x", "y")), volumes: "a:bound", give: 1},
		"or with no minimum":      {set: newSet(0, 9, making("x")), give: 1},
		"no more slots than the status takes": {set: newSet(100, 200, making(numbered(62)...)),
			volumes: strings.Join(numbered(62), ":available ") + ":available", create: 2},
		"nor more of which some are made": {set: newSet(100, 200, making(numbered(63)...)),
			volumes: strings.Join(numbered(61), ":available ") + ":available", create: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c.set.Spec.MaximumReplicas = max(c.set.Spec.MaximumReplicas, 0)
			census := count(c.set, described(t, c.set, c.volumes))
			got := plan(c.set, census, 4, c.due)
			if got.create != c.create {
				t.Errorf("it creates %d, want %d", got.create, c.create)
			}
			if got.withdraw != c.give {
				t.Errorf("it gives up %d slots, want %d", got.withdraw, c.give)
			}
			var names []string
			for _, v := range got.remove {
				names = append(names, v.Name)
			}
			if want := strings.Fields(c.remove); !slices.Equal(names, want) {
				t.Errorf("it removes %q, want %q", names, want)
			}
		})
	}
}

func TestFate(t *testing.T) {
	set := newSet(1, 1)
	for words, want := range map[string]ending{
		"a:deleting":          erase,
		"a:released":          erase,
		"a:bound":             wait,
		"a:binding":           wait,
		"a:deleting:retain":   keep,
		"a:released:retain":   keep,
		"a:failed":            erase, // csi-provisioner has failed, or has deleted it.
		"a:bound:managed":     keep,  // csi-provisioner deletes it once it is released.
		"a:failed:managed":    keep,
		"a:released:managed":  keep,
		"a:available:managed": wait,
		// The claim was removed, and csi-provisioner's finalizer came late.
		"a:available:deleting:managed":        erase,
		"a:available:deleting:retain:managed": keep,
		"a:binding:deleting:managed":          wait,
		// Kubernetes may bind a claim that is created later.
		"a:reserved":                  wait,
		"a:reserved:deleting":         fence,
		"a:reserved:deleting:retain":  fence,
		"a:reserved:deleting:managed": fence,
	} {
		name, managed := strings.CutSuffix(words, ":managed")
		v := described(t, set, name)[0]
		if managed {
			v.Finalizers = append(v.Finalizers, provisionerFinalizer)
		}
		if got := fate(v); got != want {
			t.Errorf("%s: %d, want %d", words, got, want)
		}
	}
}

// TestCondition checks the condition of a set that is full or rolling.
func TestCondition(t *testing.T) {
	for name, c := range map[string]struct {
		set           *v1alpha1.PersistentVolumeSet
		volumes, says string
	}{
		"enough":                            {newSet(1, 9), "a:available", reasonFilled},
		"enough, and old ones stay":         {newSet(1, 9), "a:available b:available:outdated:retain", reasonFilled},
		"old ones, and room":                {newSet(1, 9), "a:available:outdated:retain", reasonRolling},
		"old ones without room that go":     {newSet(1, 1), "a:available:outdated", reasonRolling},
		"old ones without room that stay":   {newSet(1, 1), "a:available:outdated:retain", reasonRetained},
		"only those of another class":       {newSet(1, 9), "a:available:slow:other", reasonFilling},
		"and no room beside them":           {newSet(1, 1), "a:available:slow:other", reasonMaximum},
		"one whose class was edited":        {newSet(1, 9), "a:available:slow", reasonFilling},
		"those that were made too small":    {newSet(1, 9), "a:available:512Mi", reasonShort},
		"and others that are enough":        {newSet(1, 9), "a:available:512Mi b:available", reasonFilled},
		"and others in the making":          {newSet(1, 9, making("x")), "a:available:512Mi", reasonFilling},
		"a successor that Kubernetes sees":  {newSet(1, 9), "a:available:outdated:retain b:fresh", reasonFilled},
		"a successor that is being created": {newSet(1, 9, making("x")), "a:available:outdated:retain", reasonRolling},
		"a deleted set, and one is made":    {newSet(0, 9, leaving, making("x")), "", reasonFilling},
	} {
		if got := judge(c.set, count(c.set, described(t, c.set, c.volumes)), verdict{}); got.reason != c.says {
			t.Errorf("%s: %+v, want %s", name, got, c.says)
		}
	}
}

// TestConditionNamesWhatFillsASet checks that a full set names an unused volume and the reason why it still exists.
func TestConditionNamesWhatFillsASet(t *testing.T) {
	for name, c := range map[string]struct{ volumes, says string }{
		"failed":           {"a:released b:failed", "2 released or failed (b: it cannot be scrubbed),"},
		"two failed":       {"c:failed b:failed", "(b: it cannot be scrubbed),"},
		"released":         {"b:released a:released", "(a is for its driver to delete: its events say why it is still"},
		"released, Retain": {"a:released:retain b:released", "(as a, which its policy Retain keeps),"},
		"to be recycled":   {"a:released:retain:recycle b:bound", "(a is for the recycler to scrub: its events say why"},
		"marked, not Retain": {"a:released:recycle b:bound", "(a is for its driver to delete, and not for the recycler, " +
			"which scrubs only volumes of policy Retain: its events say why it is still there)"},
		"all bound": {"a:bound b:bound", "2 bound, 0 released or failed, "},
	} {
		set := newSet(1, 2)
		got := judge(set, count(set, described(t, set, c.volumes)), verdict{})
		if got.reason != reasonMaximum || !strings.Contains(got.message, c.says) {
			t.Errorf("%s: %+v, want %q", name, got, c.says)
		}
	}
}

// TestConditionAfterARefusal checks when the condition reports a refusal of the driver.
func TestConditionAfterARefusal(t *testing.T) {
	for name, c := range map[string]struct {
		set           *v1alpha1.PersistentVolumeSet
		volumes, says string
	}{
		"too few, and room":               {newSet(1, 9), "a:bound", reasonRefused},
		"too few, and no room":            {newSet(1, 1), "a:bound", reasonMaximum},
		"too few, and a slot in the last": {newSet(1, 1, making("x")), "", reasonRefused},
		"old ones, and room":              {newSet(1, 9), "a:available:outdated:retain", reasonRolling},
		"old ones without room that stay": {newSet(1, 1), "a:available:outdated:retain", reasonRetained},
		"another problem, and no room":    {newSet(1, 1), "a:bound", reasonClassUnusable},
		"deleted, and none is wanted":     {newSet(0, 9, leaving, making("x")), "", reasonRefused},
		"deleted, and enough are ready":   {newSet(1, 9, leaving, making("x")), "a:available:retain", reasonRefused},
	} {
		problem := verdict{reasonRefused, "there was no room"}
		if c.says == reasonClassUnusable {
			problem.reason = reasonClassUnusable
		}
		got := judge(c.set, count(c.set, described(t, c.set, c.volumes)), problem)
		if got.reason != c.says {
			t.Errorf("%s: %+v, want %s", name, got, c.says)
		}
		if strings.Contains(got.message, "no more are created") {
			t.Errorf("%s: it is tried again, and the set says: %s", name, got.message)
		}
	}
}
