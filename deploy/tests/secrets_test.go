package tests

import (
	"maps"
	"strings"
	"testing"
)

// fields are the fields of an object.
type fields = map[string]any

// withAnnotations returns an object with other annotations.
func withAnnotations(o, pairs fields) fields {
	all := maps.Clone(o)
	all["metadata"] = fields{"name": "x", "annotations": pairs}
	return all
}

// secretive are the writes of objects that name Secrets, and whether each is allowed to everybody.
func secretive(driver string) map[string]allowance {
	const pv, node = "persistentvolumes", "nodeStageSecretRef"
	reference := map[string]any{"name": "a", "namespace": "kube-system"}
	of := func(driver string, names ...string) fields {
		csi := map[string]any{"driver": driver, "volumeHandle": "a"}
		for _, name := range names {
			csi[name] = reference
		}
		return volume(map[string]any{"csi": csi})
	}
	class := func(field, driver string, pairs ...string) fields {
		parameters := map[string]any{"pool": "a"}
		for _, name := range pairs {
			parameters[name] = "a"
		}
		return fields{"metadata": map[string]any{"name": "x"}, field: driver, "parameters": parameters}
	}
	rows := map[string]allowance{}
	row := func(name, resource string, before, after fields, allowed bool) {
		rows[name] = allowance{change{"admin", resource, "", before, after}, allowed, allowed}
	}
	for _, name := range []string{"controllerPublishSecretRef", node, "nodePublishSecretRef",
		"controllerExpandSecretRef", "nodeExpandSecretRef"} {
		row("make a volume with "+name, pv, nil, of(driver, name), false)
		row("add "+name, pv, of(driver), of(driver, name), false)
		row("change a volume with "+name, pv, of(driver, name), withAnnotations(of(driver, name), fields{"a": "b"}), true)
		row("remove "+name, pv, of(driver, name), of(driver), true)
		row("another's volume with "+name, pv, nil, of("other.example", name), true)
	}
	row("add one of two", pv, of(driver, node), of(driver, node, "nodeExpandSecretRef"), false)
	other := of(driver)
	other["spec"] = map[string]any{"csi": map[string]any{"driver": driver, node: map[string]any{"name": "b"}}}
	row("name another secret", pv, of(driver, node), other, false)
	const annotation = "volume.kubernetes.io/provisioner-deletion-secret-name"
	row("as csi-provisioner makes it", pv, nil,
		withAnnotations(of(driver), fields{annotation: "", annotation + "space": ""}), true)
	row("a secret for its deletion", pv, nil, withAnnotations(of(driver), fields{annotation: "a"}), false)
	rows["a secret for its deletion, with its status"] = allowance{change{"admin", pv, "status", of(driver),
		withAnnotations(of(driver), fields{annotation: "a"})}, false, false}
	row("such a volume's finalizer", pv, withAnnotations(of(driver), fields{annotation: "a"}),
		withAnnotations(of(driver), fields{annotation: "a"}), true)
	row("somebody's annotation", pv, nil, withAnnotations(of(driver), fields{"example.com/secret-name": "a"}), true)
	row("a volume of the host", pv, nil, volume(map[string]any{"hostPath": map[string]any{"path": "/"}}), true)
	for resource, field := range map[string]string{"storageclasses": "provisioner", "volumesnapshotclasses": "driver",
		"volumegroupsnapshotclasses": "driver"} {
		plain := class(field, driver)
		row("make one of "+resource, resource, nil, plain, true)
		for _, key := range []string{"csi.storage.k8s.io/node-stage-secret-name", "csi.storage.k8s.io/secret-name",
			"csi.storage.k8s.io/snapshotter-secret-namespace", "csiNodePublishSecretName"} {
			named := class(field, driver, key)
			row("make one of "+resource+" with "+key, resource, nil, named, false)
			row("add "+key+" to one of "+resource, resource, plain, named, false)
			row("change one of "+resource+" with "+key, resource, named, withAnnotations(named, fields{"a": "b"}), true)
			row("make another's "+resource+" with "+key, resource, nil, class(field, "other.example", key), true)
			row("take over one of "+resource+" with "+key, resource, class(field, "other.example", key), named, false)
		}
	}
	return rows
}

// TestSecretsAreNotNamed checks that no volume or class of a driver names a Secret, whoever writes it, and that those
// which do can be changed and deleted.
func TestSecretsAreNotNamed(t *testing.T) {
	for _, in := range installs() {
		t.Run(in.name, func(t *testing.T) {
			driver := in.backend + ".csi.stowage.dev"
			for way, said := range map[string]func(change) string{
				"kustomize": verdicts(t, kustomized(t, in.folder)), "helm": verdicts(t, charted(t, in.values, in.schemaless)),
			} {
				for name, a := range secretive(driver) {
					refusal := said(a.change)
					if (refusal == "") != a.alone || refusal != "" && !strings.Contains(refusal, driver+" names a Secret in ") {
						t.Errorf("%s, %s: allowed is %t, want %t: %q", name, way, refusal == "", a.alone, refusal)
					}
				}
			}
		})
	}
}
