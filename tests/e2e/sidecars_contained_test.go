package e2e

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stowage-csi/stowage/tests/e2e/deployed"
)

const (
	sidecarsAccount = "stowage-local-controller"
	nodeStageSecret = "csi.storage.k8s.io/node-stage-secret-name"
	deletionSecret  = "snapshot.storage.kubernetes.io/deletion-secret-name"
)

// TestSidecarsAreContained uses a token of the sidecars' account for the attempts of an attacker on the node of a
// standalone, and the administrator's for objects that name a Secret. All are refused.
func TestSidecarsAreContained(t *testing.T) {
	t.Parallel()
	f := found{cluster(t).NewSpace(t)}
	made, err := f.Client.CoreV1().ServiceAccounts(deployed.Namespace).CreateToken(t.Context(), sidecarsAccount,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	f.Must(err)
	sidecars, administrator := thief{f, t, f.with(made.Status.Token)}, thief{f, t, f.Dynamic}
	source := func(kind string, fields map[string]any) map[string]any {
		return map[string]any{kind: fields, "capacity": map[string]any{"storage": "1Mi"},
			"accessModes": []any{"ReadWriteOnce"}}
	}
	secret := map[string]any{"name": "any", "namespace": "kube-system"}
	ours := func(ref string) map[string]any {
		return source("csi", map[string]any{"driver": deployed.Driver, "volumeHandle": "stolen", ref: secret})
	}
	for _, ref := range []string{"nodeStageSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef",
		"controllerPublishSecretRef", "controllerExpandSecretRef"} {
		for who, h := range map[string]thief{"the sidecars": sidecars, "the administrator": administrator} {
			h.refused(who+": a volume with "+ref, h.makes("persistentvolumes", "PersistentVolume", "v1",
				map[string]any{"spec": ours(ref)}))
		}
	}
	sidecars.refused("a volume of the host", sidecars.makes("persistentvolumes", "PersistentVolume", "v1",
		map[string]any{"spec": source("hostPath", map[string]any{"path": "/"})}))
	named := map[string]any{nodeStageSecret: "any"}
	administrator.refused("a class with a secret", administrator.makes("storageclasses", "StorageClass",
		"storage.k8s.io/v1", map[string]any{"provisioner": deployed.Driver, "parameters": named}))
	administrator.refused("a class of snapshots with a secret", administrator.makes("volumesnapshotclasses",
		"VolumeSnapshotClass", "snapshot.storage.k8s.io/v1",
		map[string]any{"driver": deployed.Driver, "deletionPolicy": "Delete", "parameters": named}))
	administrator.refused("a content of snapshots with a secret", administrator.makes("volumesnapshotcontents",
		"VolumeSnapshotContent", "snapshot.storage.k8s.io/v1", map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{deletionSecret: "any"}},
			"spec": map[string]any{"driver": deployed.Driver, "deletionPolicy": "Retain",
				"source":            map[string]any{"snapshotHandle": "stolen"},
				"volumeSnapshotRef": map[string]any{"name": "any", "namespace": f.Namespace}},
		}))
}

// makes returns an attempt to create an object of the whole cluster, without a trace if it is not refused.
func (h thief) makes(resource, kind, version string, content map[string]any) func() error {
	return func() error {
		object := &unstructured.Unstructured{Object: content}
		object.SetAPIVersion(version)
		object.SetKind(kind)
		object.SetName("stolen-" + h.Namespace)
		_, err := h.of(resource, version, "").Create(h.t.Context(), object,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}
