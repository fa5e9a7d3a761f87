package nodestorage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/params"
)

// noProvisioner is the provisioner of classes without dynamic provisioning. With any other the scheduler would pick a
// node without a volume, and wait for one to be created there.
const noProvisioner = "kubernetes.io/no-provisioner"

// settings are the parameters of a class of found disks.
type settings struct {
	VolumeMode string              `param:"volumeMode" enum:"Filesystem|Block" doc:"Mode of the volumes; by default both."`
	MinSize    params.Size         `param:"minSize" doc:"Size of the smallest volume."`
	MaxSize    params.Size         `param:"maxSize" doc:"Size of the largest volume; by default there is none."`
	WipePolicy v1alpha1.WipePolicy `param:"wipePolicy" enum:"discard|zero|shred|signatures|none" default:"zero" doc:"How a volume is wiped before it is offered again."`
}

// class is a StorageClass of found disks.
type class struct {
	name       string
	reclaim    corev1.PersistentVolumeReclaimPolicy
	topologies []corev1.TopologySelectorTerm
	settings
}

// isOurs reports whether the class is for found disks.
func isOurs(c *storagev1.StorageClass) bool {
	return c.Labels[v1alpha1.LocalVolumeProvisioner] == "true" && c.DeletionTimestamp == nil
}

// parse reads and checks a class.
func parse(c *storagev1.StorageClass) (class, error) {
	parsed := class{name: c.Name, reclaim: corev1.PersistentVolumeReclaimDelete, topologies: c.AllowedTopologies}
	if c.ReclaimPolicy != nil {
		parsed.reclaim = *c.ReclaimPolicy
	}
	if err := params.Decode(c.Parameters, &parsed.settings); err != nil {
		return class{}, fmt.Errorf("StorageClass %s: %w", c.Name, err)
	}
	var err error
	switch {
	case c.Provisioner != noProvisioner:
		err = fmt.Errorf("the provisioner is %s: it must be %s, or pods would wait for volumes to be made", c.Provisioner,
			noProvisioner)
	case parsed.reclaim != corev1.PersistentVolumeReclaimDelete && parsed.reclaim != corev1.PersistentVolumeReclaimRetain:
		err = fmt.Errorf("the reclaimPolicy is %s: use Delete or Retain", parsed.reclaim)
	case len(c.MountOptions) > 0:
		err = errors.New("mountOptions are given: found filesystems are mounted already; leave them out")
	case parsed.MaxSize > 0 && parsed.MaxSize < parsed.MinSize:
		err = fmt.Errorf("minSize is %s and maxSize is %s: no size is both", parsed.MinSize, parsed.MaxSize)
	}
	if err != nil {
		return class{}, fmt.Errorf("StorageClass %s: %w", c.Name, err)
	}
	return parsed, nil
}

// takes reports whether the class accepts a volume on a node with these labels.
func (c class) takes(v v1alpha1.LocalVolumeStatus, labels map[string]string) bool {
	size := v.Capacity.Bytes()
	return (c.VolumeMode == "" || c.VolumeMode == string(v.VolumeMode)) && size >= int64(c.MinSize) &&
		(c.MaxSize == 0 || size <= int64(c.MaxSize)) && c.reaches(labels)
}

// reaches reports whether the class allows volumes on a node with these labels.
func (c class) reaches(labels map[string]string) bool {
	if len(c.topologies) == 0 {
		return true
	}
	return slices.ContainsFunc(c.topologies, func(term corev1.TopologySelectorTerm) bool {
		for _, e := range term.MatchLabelExpressions {
			if !slices.Contains(e.Values, labels[e.Key]) {
				return false
			}
		}
		return true
	})
}

// classOf returns the class of a volume, or nil if no class accepts it. It fails if several classes accept it, because
// that is an administrator's mistake.
func classOf(classes []class, v v1alpha1.LocalVolumeStatus, labels map[string]string) (*class, error) {
	var found []*class
	var names []string
	for i := range classes {
		if classes[i].takes(v, labels) {
			found, names = append(found, &classes[i]), append(names, classes[i].name)
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return found[0], nil
	}
	slices.Sort(names)
	return nil, fmt.Errorf("the classes %s all take volume %s (%s, %s): let one of them", strings.Join(names, " and "),
		v.Name, v.VolumeMode, v.Capacity)
}
