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

// see remembers that a PersistentVolume exists or existed: if it is absent later, its volume may hold data.
func (r *reconciler) see(node, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.births[node], name)
}

// seeAll calls see for all PersistentVolumes that were found.
func (r *reconciler) seeAll(node string, volumes map[string]*corev1.PersistentVolume) {
	for name := range volumes {
		r.see(node, name)
	}
}
