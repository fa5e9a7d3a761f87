package nodestorage

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// birth is this process's knowledge of a PersistentVolume that it must create, or could not create.
type birth int

const (
	untried   birth = iota + 1 // it never existed
	uncertain                  // its creation was requested, and may have happened or still happen
	barred                     // it was refused before a wipe, as it would be to every master
)

// birthsOf returns the PersistentVolumes of a node that this process must create.
func (r *reconciler) birthsOf(node string) map[string]birth {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.births[node])
}

// expect remembers the state of PersistentVolumes that must be created.
func (r *reconciler) expect(node string, b birth, names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		if r.births[node] == nil {
			r.births[node] = map[string]birth{}
		}
		r.births[node][name] = b
	}
}

// newVolumes returns the PersistentVolumes of a planned spec's new offers. They never existed: their names are new.
func newVolumes(v *view, spec *v1alpha1.NodeStorageSpec) (all []string) {
	before := map[string]bool{}
	for _, o := range v.storage.Spec.Offers {
		before[o.PersistentVolume] = true
	}
	for _, o := range spec.Offers {
		if !before[o.PersistentVolume] && v.volumes[o.PersistentVolume] == nil {
			all = append(all, o.PersistentVolume)
		}
	}
	return all
}

// expectOnly forgets the PersistentVolumes that a written spec does not offer.
func (r *reconciler) expectOnly(node string, spec *v1alpha1.NodeStorageSpec) {
	offered := map[string]bool{}
	for _, o := range spec.Offers {
		offered[o.PersistentVolume] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.births[node], func(name string, _ birth) bool { return !offered[name] })
}

// mostBirths is the number of births of a node from which those are forgotten that its spec does not offer.
const mostBirths = 4 * most

// limitBirths forgets births that a spec does not offer, if there are many: each write without an answer adds some. If
// one of these writes did arrive, its volumes are wiped, or retained, though nobody used them.
func (r *reconciler) limitBirths(node string, spec *v1alpha1.NodeStorageSpec) {
	r.mu.Lock()
	isMany := len(r.births[node]) >= mostBirths
	r.mu.Unlock()
	if isMany {
		r.expectOnly(node, spec)
	}
}

// see forgets the births of PersistentVolumes: they exist or existed, so that their volumes may hold data once they are
// absent, or they were never offered.
func (r *reconciler) see(node string, names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		delete(r.births[node], name)
	}
}

// seeAll calls see for all PersistentVolumes that were found.
func (r *reconciler) seeAll(node string, volumes map[string]*corev1.PersistentVolume) {
	for name := range volumes {
		r.see(node, name)
	}
}
