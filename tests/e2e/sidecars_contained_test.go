package e2e

import (
	"context"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

const (
	sidecarsAccount = "stowage-local-controller"
	nodeStageSecret = "csi.storage.k8s.io/node-stage-secret-name"
	deletionSecret  = "snapshot.storage.kubernetes.io/deletion-secret-name"
)

// TestSidecarsAreContained uses a token of the sidecars' account for the attempts of an attacker on the node of a
// standalone, and the administrator's for objects that name a Secret. Policies refuse all of them.
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
			h.denied(who+": a volume with "+ref, h.makes("persistentvolumes", "PersistentVolume", "v1",
				map[string]any{"spec": ours(ref)}))
		}
	}
	sidecars.denied("a volume of the host", sidecars.makes("persistentvolumes", "PersistentVolume", "v1",
		map[string]any{"spec": source("hostPath", map[string]any{"path": "/"})}))
	named := map[string]any{nodeStageSecret: "any"}
	administrator.denied("a class with a secret", administrator.makes("storageclasses", "StorageClass",
		"storage.k8s.io/v1", map[string]any{"provisioner": deployed.Driver, "parameters": named}))
	administrator.denied("a class of snapshots with a secret", administrator.makes("volumesnapshotclasses",
		"VolumeSnapshotClass", "snapshot.storage.k8s.io/v1",
		map[string]any{"driver": deployed.Driver, "deletionPolicy": "Delete", "parameters": named}))
	administrator.denied("a content of snapshots with a secret", administrator.makes("volumesnapshotcontents",
		"VolumeSnapshotContent", "snapshot.storage.k8s.io/v1", map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{deletionSecret: "any"}},
			"spec": map[string]any{"driver": deployed.Driver, "deletionPolicy": "Retain",
				"source":            map[string]any{"snapshotHandle": "stolen"},
				"volumeSnapshotRef": map[string]any{"name": "any", "namespace": f.Namespace}},
		}))
	content := administrator.content()
	for name, attempt := range map[string]struct{ patch, sub string }{
		"another policy of a content":  {patch: `{"spec":{"deletionPolicy":"Delete"}}`},
		"an annotation of a content":   {patch: `{"metadata":{"annotations":{"stolen":"true"}}}`},
		"another handle in a content":  {`{"status":{"snapshotHandle":"another"}}`, "status"},
		"a content without its handle": {`{"status":{"snapshotHandle":null}}`, "status"},
	} {
		sidecars.denied(name, func() error {
			_, err := sidecars.api.Resource(workload.Contents().Resource).Patch(t.Context(), content, types.MergePatchType,
				[]byte(attempt.patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, attempt.sub)
			return err
		})
	}
}

// denied is like refused, for an attempt that RBAC allows: a policy refuses it.
func (h thief) denied(name string, attempt func() error) {
	h.t.Helper()
	if err := attempt(); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'stowage-") {
		h.t.Errorf("%s: want it refused by a policy, got: %v", name, err)
	}
}

// content creates a content for a VolumeSnapshot that does not exist, with a handle, and returns its name.
func (h thief) content() string {
	contents := h.api.Resource(workload.Contents().Resource)
	name := "contained-" + h.Namespace
	_, err := contents.Create(h.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{"driver": deployed.Driver, "deletionPolicy": "Retain",
			"source":            map[string]any{"snapshotHandle": "stolen"},
			"volumeSnapshotRef": map[string]any{"name": "any", "namespace": h.Namespace}},
	}}, metav1.CreateOptions{})
	h.Must(err)
	h.t.Cleanup(func() {
		if err := contents.Delete(context.WithoutCancel(h.t.Context()), name, metav1.DeleteOptions{}); err != nil {
			h.t.Error(err)
		}
	})
	_, err = contents.Patch(h.t.Context(), name, types.MergePatchType, []byte(`{"status":{"snapshotHandle":"stolen"}}`),
		metav1.PatchOptions{}, "status")
	h.Must(err)
	return name
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
