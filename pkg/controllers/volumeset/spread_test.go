package volumeset

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// inZones puts each volume into the zone of its letter. A volume with a dash can be used everywhere.
func inZones(volumes []*corev1.PersistentVolume, zones string) []*corev1.PersistentVolume {
	for i, v := range volumes {
		if zone := zones[i : i+1]; zone != "-" {
			v.Spec.NodeAffinity = affinity([]map[string]string{{"zone": zone}})
		}
	}
	return volumes
}

// slotIn adds a slot in a zone.
func slotIn(zone string) func(*v1alpha1.PersistentVolumeSet) {
	return func(set *v1alpha1.PersistentVolumeSet) {
		making("slot")(set)
		set.Status.Slots[0].Segments = map[string]string{"zone": zone}
	}
}

// TestSpreadOverUnevenPlaces checks that a volume for a whole zone, and one for a node in it, count in that zone, as
// when places for new volumes are chosen.
func TestSpreadOverUnevenPlaces(t *testing.T) {
	set := newSet(0, 2)
	volumes := described(t, set, "a:available b:available c:available:2Gi")
	for i, segments := range []place{{"zone": "x"}, {"zone": "x", "node": "1"}, {"zone": "y", "node": "2"}} {
		volumes[i].Spec.NodeAffinity = affinity([]map[string]string{segments})
	}
	if remove := plan(set, count(set, volumes), 4, false).remove; len(remove) != 1 || remove[0].Name != "a" {
		t.Errorf("it removes %v, want a: its zone has the most", remove)
	}
}

// TestOccupied checks that each unbound volume counts once where new ones are placed, whether or not its slot is still
// there, and that a bound volume does not count.
func TestOccupied(t *testing.T) {
	set := newSet(0, 4, making("listed"), making("bound"), making("expected"))
	for i, zone := range []string{"x", "x", "y"} {
		set.Status.Slots[i].Segments = map[string]string{"zone": zone}
	}
	c := count(set, inZones(described(t, set, "listed:available bound:bound other:available"), "xxz"))
	o := &round{set: set, census: c, ended: map[string]bool{}}
	from := []place{{"zone": "x"}, {"zone": "y"}, {"zone": "z"}}
	if got := newTally(from, o.census.occupied()).uses; !slices.Equal(got, []int{1, 1, 1}) {
		t.Errorf("in x, y and z are %v volumes, want one each", got)
	}
	o.end("expected")
	if got := newTally(from, o.census.occupied()).uses; !slices.Equal(got, []int{1, 0, 1}) {
		t.Errorf("after a slot ended, in x, y and z are %v volumes, want none in y", got)
	}
}

// TestSpread checks that deletions leave the unbound volumes spread over the zones, and delete the largest first as far
// as that allows.
func TestSpread(t *testing.T) {
	for name, c := range map[string]struct {
		set            *v1alpha1.PersistentVolumeSet
		volumes, zones string
		due            bool
		remove         string
	}{
		"the largest is alone in its zone": {set: newSet(0, 2),
			volumes: "a:available:9Gi b:available c:available", zones: "xyy", remove: "b"},
		"zones with as many: the largest, then the largest of the other zone": {set: newSet(0, 2),
			volumes: "a:available:2Gi b:available c:available:4Gi d:available:3Gi", zones: "xxyy", remove: "c a"},
		"a crowded zone is emptied as far as the others": {set: newSet(0, 3),
			volumes: "a:available b:available c:available d:available e:available:2Gi f:available:2Gi", zones: "xxxxyz",
			remove: "a b c"},
		"other people's volumes are in their zones too": {set: newSet(0, 2),
			volumes: "a:available:other b:available c:available:2Gi", zones: "xxy", remove: "b"},
		"bound ones are not: a claim has them": {set: newSet(0, 2),
			volumes: "a:bound b:available c:available:2Gi", zones: "xxy", remove: "c"},
		"a volume that is being created is in its zone": {set: newSet(0, 2, slotIn("x")),
			volumes: "b:available c:available:2Gi", zones: "xy", remove: "b"},
		"one whose PersistentVolume is there counts once": {set: newSet(0, 2, slotIn("x")),
			volumes: "slot:available:2Gi b:available c:available", zones: "xyy", remove: "b"},
		"volumes for all zones are a place of their own": {set: newSet(0, 2),
			volumes: "a:available:9Gi b:available c:available:2Gi", zones: "x--", remove: "c"},
		"a surplus": {set: newSet(2, 9),
			volumes: "a:available:3Gi b:available:2Gi c:available d:available", zones: "xxyy", due: true, remove: "a c"},
		"outdated ones go first, wherever they are": {set: newSet(1, 9),
			volumes: "a:available b:available c:available d:available:outdated", zones: "xxxy", due: true, remove: "d a b"},
	} {
		volumes := inZones(described(t, c.set, c.volumes), c.zones)
		var got []string
		for _, v := range plan(c.set, count(c.set, volumes), 4, c.due).remove {
			got = append(got, v.Name)
		}
		if want := strings.Fields(c.remove); !slices.Equal(got, want) {
			t.Errorf("%s: it removes %q, want %q", name, got, want)
		}
	}
}
