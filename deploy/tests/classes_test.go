package tests

import (
	"slices"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
)

// TestValuesOfClasses checks that a class can have labels, by which other programs choose it, and that a StorageClass
// can be limited to places.
func TestValuesOfClasses(t *testing.T) {
	zone := []any{map[string]any{"matchLabelExpressions": []any{
		map[string]any{"key": "topology.kubernetes.io/zone", "values": []any{"eu-central-1a"}}}}}
	one := func() []any {
		return []any{map[string]any{"name": "a", "labels": map[string]any{"b": "c"}, "annotations": map[string]any{"d": "e"},
			"parameters": map[string]any{"f": "g"}}}
	}
	class, _ := one()[0].(map[string]any)
	class["allowedTopologies"] = zone
	values := map[string]any{"backend": "nfs", "storageClasses": []any{class}, "volumeSnapshotClasses": one(),
		"volumeGroupSnapshotClasses": one(), "volumeAttributesClasses": one(), "sidecars": groups(true)}
	objects := charted(t, values, false)
	for _, kind := range []string{"StorageClass", "VolumeSnapshotClass", "VolumeGroupSnapshotClass",
		"VolumeAttributesClass"} {
		o := find(t, objects, kind+"/a")
		typed(t, o)
		if o.GetLabels()["b"] != "c" || o.GetAnnotations()["d"] != "e" {
			t.Errorf("the %s has the labels %v and the annotations %v", kind, o.GetLabels(), o.GetAnnotations())
		}
	}
	limited := typed(t, find(t, objects, "StorageClass/a")).(*storagev1.StorageClass)
	if places := limited.AllowedTopologies; len(places) != 1 ||
		!slices.Equal(places[0].MatchLabelExpressions[0].Values, []string{"eu-central-1a"}) {
		t.Errorf("volumes of the class are allowed in %v", places)
	}
}

func groups(on bool) map[string]any {
	return map[string]any{"snapshotter": map[string]any{"groups": on}}
}

// TestClassesAreServed checks that a class for which no part of the release works is refused, with a sentence that
// names the value.
func TestClassesAreServed(t *testing.T) {
	one := []any{map[string]any{"name": "a", "parameters": map[string]any{"b": "c"}}}
	off := map[string]any{"snapshotter": map[string]any{"enabled": false}}
	for name, c := range map[string]struct {
		backend, class string
		sidecars       map[string]any
		kubernetes     string
		says           string // empty if it is rendered
	}{
		"snapshots":              {"ebs", "volumeSnapshotClasses", nil, "v1.36.3", ""},
		"nobody to take them":    {"ebs", "volumeSnapshotClasses", off, "v1.36.3", "sidecars.snapshotter.enabled is false"},
		"nor those of groups":    {"local", "volumeGroupSnapshotClasses", off, "v1.36.3", "volumeGroupSnapshotClasses are"},
		"groups of local":        {"local", "volumeGroupSnapshotClasses", nil, "v1.36.3", ""},
		"turned off":             {"local", "volumeGroupSnapshotClasses", groups(false), "v1.36.3", "groups=true"},
		"groups of nfs, unasked": {"nfs", "volumeGroupSnapshotClasses", nil, "v1.36.3", "sidecars.snapshotter.groups=true"},
		"groups of nfs":          {"nfs", "volumeGroupSnapshotClasses", groups(true), "v1.36.3", ""},
		"groups of ebs":          {"ebs", "volumeGroupSnapshotClasses", nil, "v1.36.3", "leave them out"},
		"groups of ebs, asked":   {"ebs", "storageClasses", groups(true), "v1.36.3", "sidecars.snapshotter.groups is true"},
		"attributes":             {"ebs", "volumeAttributesClasses", nil, "v1.34.0-eks-1", ""},
		"attributes, not yet":    {"ebs", "volumeAttributesClasses", nil, "v1.33.9", "Kubernetes is v1.33.9"},
		"all others are there":   {"ebs", "storageClasses", nil, "v1.30.0", ""},
	} {
		class := one
		if c.class != "volumeAttributesClasses" {
			class = []any{map[string]any{"name": "a"}}
		}
		values := map[string]any{"backend": c.backend, c.class: class}
		if c.sidecars != nil {
			values["sidecars"] = c.sidecars
		}
		_, err := renderedOn(c.kubernetes, values, false)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: rendered with %v, want %q in it", name, err, c.says)
		}
	}
}

// TestGroupsOfSnapshots checks that csi-snapshotter takes snapshots of groups exactly where it has the rights to them.
func TestGroupsOfSnapshots(t *testing.T) {
	for name, c := range map[string]struct {
		backend string
		values  map[string]any
		want    bool
	}{
		"local": {"local", nil, true}, "local, off": {"local", groups(false), false}, "nfs": {"nfs", nil, false},
		"nfs, on": {"nfs", groups(true), true}, "ebs": {"ebs", groups(false), false},
	} {
		values := map[string]any{"backend": c.backend}
		if c.values != nil {
			values["sidecars"] = c.values
		}
		objects, flag := charted(t, values, false), false
		for _, pod := range pods(t, objects) {
			for _, c := range containers(pod) {
				flag = flag || slices.Contains(c.Args, "--feature-gates=CSIVolumeGroupSnapshot=true")
			}
		}
		right := slices.ContainsFunc(granted(t, objects),
			func(line string) bool { return strings.Contains(line, "groupsnapshot.storage.k8s.io/") })
		if flag != c.want || right != c.want {
			t.Errorf("%s: groups are served: %t, with rights: %t, want %t", name, flag, right, c.want)
		}
	}
}
