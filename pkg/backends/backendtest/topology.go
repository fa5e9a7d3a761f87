package backendtest

import (
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// topologyChecks check the promises of Topologist and Locator.
func topologyChecks() []check {
	return []check{
		{"the keys are there and different", func(w *world) {
			keys := w.f.Topologist.TopologyKeys()
			if len(keys) == 0 || slices.Contains(keys, "") ||
				len(slices.Compact(slices.Sorted(slices.Values(keys)))) != len(keys) {
				w.Errorf("the topology keys are %q, want at least one and none empty or twice", keys)
			}
		}},
		{"this node has one segment for each key", func(w *world) { w.here() }},
		{"a volume can be had where this node is", volumeHere},
		{"a place that cannot be met is Exhausted", placeImpossible},
	}
}

// here returns this node's topology and checks it.
func (w *world) here() backends.Topology {
	w.Helper()
	here, err := w.f.Locate.Topology(w.ctx())
	w.must("Topology", err)
	keys := w.f.Topologist.TopologyKeys()
	if len(here) != len(keys) {
		w.Errorf("this node's place is %v, want the keys %q", here, keys)
	}
	for _, key := range keys {
		if here[key] == "" {
			w.Errorf("this node's place is %v, want a segment %q", here, key)
		}
	}
	return here
}

// reachable checks the topology of a volume or snapshot.
func (w *world) reachable(places []backends.Topology) {
	w.Helper()
	if w.f.Topologist == nil {
		if len(places) != 0 {
			w.Errorf("the topology is %v, but the backend is no Topologist", places)
		}
		return
	}
	keys := w.f.Topologist.TopologyKeys()
	for _, place := range places {
		if len(place) == 0 {
			w.Errorf("a place in the topology %v is empty", places)
		}
		for key, value := range place {
			if value == "" || !slices.Contains(keys, key) {
				w.Errorf("the place %v has the segment %q=%q, want the keys %q", place, key, value, keys)
			}
		}
	}
}

func volumeHere(w *world) {
	here := w.here()
	for name, requirement := range map[string]backends.TopologyRequirement{
		"nowhere in particular": {},
		"required":              {Requisite: []backends.Topology{here}},
		"preferred":             {Preferred: []backends.Topology{here}},
		"both":                  {Requisite: []backends.Topology{here}, Preferred: []backends.Topology{here}},
	} {
		spec := w.spec(name)
		spec.Topology = requirement
		v, err := w.c.Create(w.ctx(), spec)
		w.must("Create, "+name, err)
		w.meets(v, spec)
		if name == "nowhere in particular" || len(v.Topology) == 0 {
			continue
		}
		if !slices.ContainsFunc(v.Topology, here.Within) {
			w.Errorf("%s: the volume is in %v, want it to be reachable from %v", name, v.Topology, here)
		}
	}
}

func placeImpossible(w *world) {
	nowhere := backends.Topology{}
	for _, key := range w.f.Topologist.TopologyKeys() {
		nowhere[key] = "no-such-place"
	}
	spec := w.spec("one")
	spec.Topology = backends.TopologyRequirement{Requisite: []backends.Topology{nowhere},
		Preferred: []backends.Topology{nowhere}}
	_, err := w.c.Create(w.ctx(), spec)
	w.fails("Create in no place", err, backends.Exhausted)
	_, err = w.c.Find(w.ctx(), w.spec("one"))
	w.fails("finding it then", err, backends.NotFound)
}
