package recycler

import (
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// overlap reports whether two volumes may have storage in common. A wrong yes leaves a volume unused, and a wrong no
// erases the files of another tenant: so only a proof of two storages counts as a no.
func overlap(a, b *corev1.PersistentVolumeSpec) bool {
	switch {
	case a.CSI != nil && b.CSI != nil:
		return a.CSI.Driver == b.CSI.Driver && a.CSI.VolumeHandle == b.CSI.VolumeHandle
	case a.CSI != nil || b.CSI != nil:
		return false // Only a driver knows the storage of its handles.
	case a.NFS != nil && b.NFS != nil:
		return strings.EqualFold(a.NFS.Server, b.NFS.Server) && touch(a.NFS.Path, b.NFS.Path)
	case pathOnNode(a) != "" && pathOnNode(b) != "":
		return touch(pathOnNode(a), pathOnNode(b)) && !areApart(a.NodeAffinity, b.NodeAffinity)
	}
	return equality.Semantic.DeepEqual(identity(a), identity(b))
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

// touch reports whether two absolute paths are equal or one is below the other.
func touch(a, b string) bool { return isWithin(a, b) || isWithin(b, a) }

// isWithin reports whether an absolute path is equal to another or below it.
func isWithin(below, other string) bool {
	other = strings.TrimRight(path.Clean(other), "/") + "/"
	return strings.HasPrefix(strings.TrimRight(path.Clean(below), "/")+"/", other)
}

// areApart reports whether no node can satisfy both affinities: each pair of their terms demands different values of
// one label. The nodes that exist now prove nothing, because a node may lose and regain its labels.
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
		"cachingMode", "chapAuthDiscovery", "chapAuthSession", "fsType", "initiatorName", "iscsiInterface", "keyring",
		"monitors", "partition", "portals", "readOnly", "secretFile", "secretRef", "targetPortal", "user",
	}
	for _, source := range sources {
		if fields, ok := source.(map[string]any); ok {
			maps.DeleteFunc(fields, func(field string, _ any) bool { return slices.Contains(options, field) })
		}
	}
	return sources
}
