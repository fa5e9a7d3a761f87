package recycler

import (
	"cmp"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// overlap reports whether two PersistentVolumes may have storage in common. A wrong yes leaves a volume unused, and a
// wrong no erases the files of another tenant: in doubt it is a yes. It sees only the objects. Two names of one server,
// two links to one device, and the storage behind another driver's handle are known to people alone.
func overlap(a, b *corev1.PersistentVolumeSpec) bool {
	oneServer, onePath, isOne := export(a)
	server, path, isExport := export(b)
	switch {
	case isSameHandle(a.CSI, b.CSI):
		return true
	case isOne && isExport:
		return oneServer == server && touch(onePath, path)
	case a.CSI != nil || b.CSI != nil:
		return false
	case a.ISCSI != nil && b.ISCSI != nil:
		return strings.EqualFold(a.ISCSI.IQN, b.ISCSI.IQN) && a.ISCSI.Lun == b.ISCSI.Lun
	case pathOnNode(a) != "" && pathOnNode(b) != "":
		return touch(pathOnNode(a), pathOnNode(b)) && !areApart(a.NodeAffinity, b.NodeAffinity)
	}
	return equality.Semantic.DeepEqual(identity(a), identity(b))
}

func isSameHandle(a, b *corev1.CSIPersistentVolumeSource) bool {
	return a != nil && b != nil && a.Driver == b.Driver && a.VolumeHandle == b.VolumeHandle
}

// export returns the server and the path of a volume on NFS. CSI drivers for NFS give both as volume attributes.
func export(v *corev1.PersistentVolumeSpec) (server, at string, is bool) {
	switch {
	case v.NFS != nil:
		server, at = v.NFS.Server, v.NFS.Path
	case v.CSI != nil:
		given := v.CSI.VolumeAttributes
		server, at = given["server"], path.Join(given["share"], cmp.Or(given["subDir"], given["subdir"]))
	}
	return strings.ToLower(strings.TrimSuffix(server, ".")), at, server != "" && at != ""
}

// pathOnNode returns the path of a volume that is a directory or device of its node, or "".
func pathOnNode(v *corev1.PersistentVolumeSpec) string {
	switch {
	case v.Local != nil:
		return v.Local.Path
	case v.HostPath != nil:
		return v.HostPath.Path
	}
	return ""
}

// touch reports whether two absolute paths are equal or one is below the other, or a partition of a device.
func touch(a, b string) bool { return isWithin(a, b) || isWithin(b, a) }

// isWithin reports whether an absolute path is equal to another or below it, or a partition of the device at it.
func isWithin(below, other string) bool {
	below, other = path.Clean(below), path.Clean(other)
	rest, isLonger := strings.CutPrefix(below, strings.TrimRight(other, "/"))
	if !isLonger {
		return false
	}
	return rest == "" || rest[0] == '/' || regexp.MustCompile(partition).MatchString(other+" "+rest)
}

// partition matches the path of a disk and what the path of its partition adds. Other names may end with any number:
// sdb12 is no partition of sdb1, nor is one logical volume of another.
const partition = `^/dev/((sd|vd|xvd|hd)[a-z]+ |(nvme\d+n|mmcblk|loop|nbd|md)\d+ p|(disk|mapper)/\S+ -part)\d+$`

// areApart reports whether no node can satisfy both affinities at a time: each pair of their terms demands different
// values of one label or field. The nodes that exist now are no proof: one may lack a label for a while.
func areApart(a, b *corev1.VolumeNodeAffinity) bool {
	if a == nil || b == nil || a.Required == nil || b.Required == nil {
		return false
	}
	for _, one := range a.Required.NodeSelectorTerms {
		for _, other := range b.Required.NodeSelectorTerms {
			if !contradict(one.MatchExpressions, other.MatchExpressions) && !contradict(one.MatchFields, other.MatchFields) {
				return false
			}
		}
	}
	return true
}

// contradict reports whether two lists of requirements demand different values of one key.
func contradict(a, b []corev1.NodeSelectorRequirement) bool {
	for _, one := range a {
		for _, other := range b {
			if one.Key == other.Key && one.Operator == corev1.NodeSelectorOpIn && other.Operator == corev1.NodeSelectorOpIn &&
				!slices.ContainsFunc(one.Values, func(v string) bool { return slices.Contains(other.Values, v) }) {
				return true
			}
		}
	}
	return false
}

// identity returns the source of a volume without the options of its mount: two volumes may show the same storage with
// different options.
func identity(v *corev1.PersistentVolumeSpec) map[string]any {
	sources, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v.PersistentVolumeSource)
	if err != nil {
		return nil // Equal to the other's, if that fails too.
	}
	options := []string{
		"cachingMode", "fsType", "keyring", "monitors", "partition", "readOnly",
		"secretFile", "secretRef", "user",
	}
	for _, source := range sources {
		if fields, ok := source.(map[string]any); ok {
			maps.DeleteFunc(fields, func(field string, _ any) bool { return slices.Contains(options, field) })
		}
	}
	return sources
}
