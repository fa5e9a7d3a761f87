package tests

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// install is an installation that both kustomize and Helm can create.
type install struct {
	name       string
	backend    string         // part of the objects' names, as in stowage-local
	manager    bool           // the manager of PersistentVolumeSets runs beside the driver
	orphans    bool           // that manager looks for orphans
	failover   bool           // that manager puts nodes out of service
	startup    bool           // that manager removes startup taints
	cluster    bool           // a master serves the cluster, and a driver with a worker serves each node
	folder     string         // the kustomization, relative to deploy/
	values     map[string]any // the equivalent values of the chart
	schemaless bool           // the backend does not exist yet, only its bases do
}

// installs returns all installations, each backend's without and with the manager of PersistentVolumeSets.
func installs() []install {
	all := []install{
		{name: "local-standalone", values: map[string]any{}},
		{name: "nfs", values: map[string]any{"backend": "nfs"}},
		{name: "ebs", values: map[string]any{"backend": "ebs"}},
	}
	for _, in := range slices.Clone(all) {
		in.name, in.manager, in.values = in.name+"-manager", true, maps.Clone(in.values)
		in.values["manager"] = map[string]any{"enabled": true}
		all = append(all, in)
	}
	all = append(all, install{name: "ebs-orphans", manager: true, orphans: true, values: map[string]any{
		"backend": "ebs", "manager": map[string]any{"enabled": true, "orphans": map[string]any{"enabled": true}},
	}})
	all = append(all, install{name: "ebs-failover", manager: true, failover: true, values: map[string]any{
		"backend": "ebs", "manager": map[string]any{"enabled": true, "failover": map[string]any{"enabled": true}},
	}})
	all = append(all, install{name: "ebs-startup", manager: true, startup: true, values: map[string]any{
		"backend": "ebs", "manager": map[string]any{"enabled": true, "startupTaint": map[string]any{"enabled": true}},
	}})
	for i := range all {
		all[i].folder = "kubernetes/overlays/" + all[i].name
		all[i].backend, _, _ = strings.Cut(all[i].name, "-")
	}
	all = append(all, install{
		name: "local-volumes", backend: "local", cluster: true, folder: localVolumesFolder,
		values: map[string]any{"local": map[string]any{"mode": "cluster"}},
	})
	return append(all, install{
		name: "attaching", backend: "attaching", folder: "tests/testdata/attaching", schemaless: true,
		values: map[string]any{"backend": "attaching"},
	})
}

// The objects of a cluster's local volumes that create pods, except localNode.
const (
	disksMaster = "Deployment/stowage-system/stowage-disks-master"
	disksAgent  = "DaemonSet/stowage-system/stowage-disks-worker"
	disksOpener = "DaemonSet/stowage-system/stowage-disks"
)

// driverOf returns the container of a pod that serves CSI. The pods for found disks have none: the master serves for
// drivers.
func driverOf(t *testing.T, id string, pod corev1.PodTemplateSpec) (c corev1.Container, has bool) {
	t.Helper()
	if id == disksMaster || id == disksAgent || id == disksOpener {
		return corev1.Container{}, false
	}
	return container(t, pod, "stowage"), true
}

// classValues returns the values with which the chart creates the classes of kubernetes/examples/local.
func classValues() map[string]any {
	class := func(name string, more map[string]any) map[string]any {
		more["name"] = name
		return more
	}
	parameters := func(pairs ...any) map[string]any {
		values := map[string]any{}
		for pair := range slices.Chunk(pairs, 2) {
			values[pair[0].(string)] = pair[1]
		}
		return map[string]any{"parameters": values}
	}
	fstype := "csi.storage.k8s.io/fstype"
	return map[string]any{
		"storageClasses": []any{
			class("stowage-local", parameters("pool", "image", fstype, "ext4")),
			class("stowage-local-xfs", parameters("pool", "image", fstype, "xfs")),
		},
		"volumeSnapshotClasses": []any{class("stowage-local", map[string]any{}),
			class("stowage-local-copy", parameters("inUse", "copy"))},
		"volumeGroupSnapshotClasses": []any{class("stowage-local", map[string]any{})},
		"volumeAttributesClasses": []any{
			class("stowage-local-retain", parameters("onDelete", "retain")),
			class("stowage-local-sequential", parameters("readAheadKiB", "4096")),
		},
	}
}

// The kustomizations with classes.
const (
	examples    = "kubernetes/examples/local"
	nfsExamples = "kubernetes/examples/nfs"
	ebsExamples = "kubernetes/examples/ebs"
)

// each runs a test for each installation in both ways, and for the classes.
func each(t *testing.T, test func(t *testing.T, objects []object)) {
	for _, in := range installs() {
		t.Run(in.name+"/kustomize", func(t *testing.T) { test(t, kustomized(t, in.folder)) })
		t.Run(in.name+"/helm", func(t *testing.T) { test(t, charted(t, in.values, in.schemaless)) })
	}
	t.Run("classes/kustomize", func(t *testing.T) { test(t, kustomized(t, examples)) })
	t.Run("nfs classes/kustomize", func(t *testing.T) { test(t, kustomized(t, nfsExamples)) })
	t.Run("ebs classes/kustomize", func(t *testing.T) { test(t, kustomized(t, ebsExamples)) })
	t.Run("classes/helm", func(t *testing.T) { test(t, charted(t, classValues(), false)) })
}
