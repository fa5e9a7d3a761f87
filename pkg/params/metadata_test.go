package params

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// secretKeys are the secret references of a family, with the reserved prefix.
func secretKeys(families ...string) map[string]string {
	values := map[string]string{}
	for _, family := range families {
		values["csi.storage.k8s.io/"+family+"secret-name"] = "hunter2"
		values["csi.storage.k8s.io/"+family+"secret-namespace"] = "${pvc.namespace}"
	}
	return values
}

func TestMetadataKnowsWhatTheProvisionerHandles(t *testing.T) {
	values := secretKeys("", "provisioner-", "controller-publish-", "controller-expand-", "controller-modify-",
		"node-stage-", "node-publish-", "node-expand-")
	for _, key := range []string{"csiProvisionerSecret", "csiControllerPublishSecret", "csiNodeStageSecret",
		"csiNodePublishSecret"} {
		values[key+"Name"], values[key+"Namespace"] = "hunter2", "ns"
	}
	values["csi.storage.k8s.io/pvc/namespace"] = "ns"
	values["csi.storage.k8s.io/pvc/name"] = "claim"
	values["csi.storage.k8s.io/pv/name"] = "pvc-1"
	var got Metadata
	if err := Decode(values, &got); err != nil {
		t.Fatal(err)
	}
	if want := (Metadata{PVCNamespace: "ns", PVCName: "claim", PVName: "pvc-1"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if known := allKeys(Describe(got)); !slices.Equal(known, slices.Sorted(maps.Keys(values))) {
		t.Errorf("the known keys are %q, and this test gives %q", known, slices.Sorted(maps.Keys(values)))
	}
}

func TestSnapshotMetadataKnowsWhatTheSnapshotterHandles(t *testing.T) {
	values := secretKeys("snapshotter-", "snapshotter-list-", "group-snapshotter-", "group-snapshotter-get-")
	values["csi.storage.k8s.io/volumesnapshot/namespace"] = "ns"
	values["csi.storage.k8s.io/volumesnapshot/name"] = "snap"
	values["csi.storage.k8s.io/volumesnapshotcontent/name"] = "snapcontent-1"
	values["csi.storage.k8s.io/volumegroupsnapshot/namespace"] = "group-ns"
	values["csi.storage.k8s.io/volumegroupsnapshot/name"] = "group"
	values["csi.storage.k8s.io/volumegroupsnapshotcontent/name"] = "groupcontent-1"
	var got SnapshotMetadata
	if err := Decode(values, &got); err != nil {
		t.Fatal(err)
	}
	want := SnapshotMetadata{
		SnapshotNamespace: "ns", SnapshotName: "snap", ContentName: "snapcontent-1",
		GroupNamespace: "group-ns", GroupName: "group", GroupContentName: "groupcontent-1",
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if known := allKeys(Describe(got)); !slices.Equal(known, slices.Sorted(maps.Keys(values))) {
		t.Errorf("the known keys are %q, and this test gives %q", known, slices.Sorted(maps.Keys(values)))
	}
}

func allKeys(fields []Field) []string {
	var keys []string
	for _, f := range fields {
		keys = append(append(keys, f.Key), f.Aliases...)
	}
	slices.Sort(keys)
	return keys
}

// TestSecretReferencesLeaveNoTrace proves that ignored values are neither stored nor shown.
func TestSecretReferencesLeaveNoTrace(t *testing.T) {
	values := secretKeys("provisioner-", "node-stage-")
	var got Metadata
	if err := Decode(values, &got); err != nil {
		t.Fatal(err)
	}
	if len(Encode(got)) != 0 || got != (Metadata{}) {
		t.Errorf("the secret references are kept: %+v, %q", got, Encode(got))
	}
	values["csi.storage.k8s.io/snapshotter-secret-name"] = "hunter2"
	values["secretToken"] = "hunter2"
	err := Decode(values, &got)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error is %v, want one without a value", err)
	}
}
