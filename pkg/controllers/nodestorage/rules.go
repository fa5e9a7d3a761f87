package nodestorage

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// Rules restrict which parts of a worker's report the master accepts.
type Rules struct {
	// Devices is the directory of the links to devices. Each link has its volume's name.
	Devices string
	// Mounts are the parent directories of the filesystems' mount points.
	Mounts []string
}

// smallest is the minimum size of an offered volume.
const smallest = 1 << 20

// check fails for a volume that an honest worker would not report.
func (r Rules) check(v v1alpha1.LocalVolumeStatus) error {
	if size := v.Capacity.Bytes(); size < smallest {
		return fmt.Errorf("the capacity of volume %s is %q: it must be 1Mi at least", v.Name, v.Capacity)
	}
	switch v.VolumeMode {
	case corev1.PersistentVolumeBlock:
		if want := path.Join(r.Devices, string(v.Name)); v.Path != want {
			return fmt.Errorf("the path of volume %s is %q: a device is offered at %q only", v.Name, v.Path, want)
		}
	case corev1.PersistentVolumeFilesystem:
		if path.Clean(v.Path) != v.Path || !slices.Contains(r.Mounts, path.Dir(v.Path)) {
			return fmt.Errorf("the path of volume %s is %q: a filesystem is offered right below %s only", v.Name, v.Path,
				strings.Join(r.Mounts, ", "))
		}
	default:
		return fmt.Errorf("the mode of volume %s is %q: it must be Block or Filesystem", v.Name, v.VolumeMode)
	}
	return nil
}

// shared returns the paths that more than one volume has.
func shared(volumes []v1alpha1.LocalVolumeStatus) map[string]bool {
	seen := map[string]bool{}
	for _, v := range volumes {
		_, twice := seen[v.Path]
		seen[v.Path] = twice
	}
	return seen
}
