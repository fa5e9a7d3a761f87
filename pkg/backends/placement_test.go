package backends_test

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func TestTopologyWithin(t *testing.T) {
	here := backends.Topology{"zone": "z1", "node": "n1"}
	for _, row := range []struct {
		name  string
		place backends.Topology
		want  bool
	}{
		{"anywhere", nil, true},
		{"the same place", backends.Topology{"zone": "z1", "node": "n1"}, true},
		{"a larger place", backends.Topology{"zone": "z1"}, true},
		{"another node of the zone", backends.Topology{"zone": "z1", "node": "n2"}, false},
		{"another zone", backends.Topology{"zone": "z2"}, false},
		{"a smaller place", backends.Topology{"zone": "z1", "node": "n1", "disk": "d1"}, false},
		{"a place of another kind", backends.Topology{"region": "r1"}, false},
	} {
		if have := here.Within(row.place); have != row.want {
			t.Errorf("%v is within %s, %v: %t, want %t", here, row.name, row.place, have, row.want)
		}
	}
}

func TestTopologyAgrees(t *testing.T) {
	here := backends.Topology{"zone": "z1", "rack": "r1"}
	for _, row := range []struct {
		name  string
		place backends.Topology
		want  bool
	}{
		{"anywhere", nil, true},
		{"a larger place", backends.Topology{"zone": "z1"}, true},
		{"a smaller place", backends.Topology{"zone": "z1", "rack": "r1", "disk": "d1"}, true},
		{"a place of another kind", backends.Topology{"region": "r1"}, true},
		{"another zone", backends.Topology{"zone": "z2", "rack": "r1"}, false},
	} {
		if have := here.Agrees(row.place); have != row.want {
			t.Errorf("%v agrees with %s, %v: %t, want %t", here, row.name, row.place, have, row.want)
		}
	}
}

func TestTopologyRequirementAllows(t *testing.T) {
	here, there := backends.Topology{"zone": "z1"}, backends.Topology{"zone": "z2"}
	for _, row := range []struct {
		name        string
		requirement backends.TopologyRequirement
		want        bool
	}{
		{"none", backends.TopologyRequirement{}, true},
		{"only a preference for elsewhere", backends.TopologyRequirement{Preferred: []backends.Topology{there}}, true},
		{"here", backends.TopologyRequirement{Requisite: []backends.Topology{here}}, true},
		{"elsewhere", backends.TopologyRequirement{Requisite: []backends.Topology{there}}, false},
		{"another key", backends.TopologyRequirement{Requisite: []backends.Topology{{"rack": "r1"}}}, true},
		{"either", backends.TopologyRequirement{Requisite: []backends.Topology{there, here}}, true},
	} {
		if have := row.requirement.Allows(here); have != row.want {
			t.Errorf("the requirement %s allows %v: %t, want %t", row.name, here, have, row.want)
		}
	}
}

func TestGroupIsReadyWhenAllItsSnapshotsAre(t *testing.T) {
	ready, notYet := backends.Snapshot{Ready: true}, backends.Snapshot{}
	for _, row := range []struct {
		snapshots []backends.Snapshot
		want      bool
	}{
		{nil, true},
		{[]backends.Snapshot{ready, ready}, true},
		{[]backends.Snapshot{ready, notYet}, false},
		{[]backends.Snapshot{notYet, ready}, false},
	} {
		if have := (backends.Group{Snapshots: row.snapshots}).Ready(); have != row.want {
			t.Errorf("a group of %+v is ready: %t, want %t", row.snapshots, have, row.want)
		}
	}
}
