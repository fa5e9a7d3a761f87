package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	localVolumesFolder = "kubernetes/local-volumes"
	localWorker        = "system:serviceaccount:stowage-system:stowage-local-worker"
	localNode          = "DaemonSet/stowage-system/stowage-local-node"
)

// localVolumesRights returns all rights of master and workers in addition to those for found disks.
func localVolumesRights() []right {
	const core, snapshots, groups = "", "snapshot.storage.k8s.io", "groupsnapshot.storage.k8s.io"
	return []right{
		{"Role master", "stowage.dev", "localvolumes", "get,list,watch,create,update,delete",
			"has a node make, grow and delete a volume"},
		{"Role master", "stowage.dev", "localsnapshots", "get,list,watch,create,update,delete",
			"has a node take and delete a snapshot"},
		{"Role master", "stowage.dev", "localsnapshotgroups", "get,list,watch,create,update,delete",
			"has a node take and delete a group of snapshots"},
		{"Role master", "storage.k8s.io", "csistoragecapacities", "list,watch,create,update,delete",
			"csi-provisioner publishes the room of the nodes"},
		{"Role master", core, "pods", "get", "csi-provisioner finds its pod's owner"},
		{"Role master", "apps", "replicasets", "get", "csi-provisioner finds the owner of its pod's owner"},
		{"ClusterRole master", core, "persistentvolumes", "get,list,watch,create,patch,delete",
			"csi-provisioner makes and removes them, csi-resizer writes their sizes"},
		{"ClusterRole master", core, "persistentvolumeclaims", "list,watch,update",
			"the sidecars take claims as orders; csi-provisioner gives up a node without room"},
		{"ClusterRole master", core, "persistentvolumeclaims/status", "patch", "csi-resizer writes how far it is"},
		{"ClusterRole master", core, "pods", "list,watch", "csi-resizer waits with an offline resize"},
		{"ClusterRole master", core, "events", "create,patch", "the sidecars tell the claim what went wrong"},
		{"ClusterRole master", core, "nodes", "list,watch", "csi-provisioner knows the topology"},
		{"ClusterRole master", "storage.k8s.io", "csinodes", "list,watch", "csi-provisioner knows the topology's keys"},
		{"ClusterRole master", "storage.k8s.io", "storageclasses", "list,watch", "csi-provisioner reads the parameters"},
		{"ClusterRole master", "storage.k8s.io", "volumeattributesclasses", "get,list,watch",
			"csi-provisioner and csi-resizer read the parameters"},
		{"ClusterRole master", snapshots, "volumesnapshots", "get,list,watch,update",
			"csi-provisioner protects a snapshot that it restores"},
		{"ClusterRole master", snapshots, "volumesnapshotclasses", "list,watch", "csi-snapshotter reads the parameters"},
		{"ClusterRole master", snapshots, "volumesnapshotcontents", "get,list,watch,patch",
			"csi-snapshotter takes contents as orders"},
		{"ClusterRole master", snapshots, "volumesnapshotcontents/status", "update,patch",
			"csi-snapshotter writes handle and size"},
		{"ClusterRole master", groups, "volumegroupsnapshotclasses", "list,watch", "csi-snapshotter reads the parameters"},
		{"ClusterRole master", groups, "volumegroupsnapshotcontents", "get,list,watch,patch",
			"csi-snapshotter takes contents as orders"},
		{"ClusterRole master", groups, "volumegroupsnapshotcontents/status", "update,patch",
			"csi-snapshotter writes the members"},
		{"Role worker", "stowage.dev", "localsnapshotgroups", "get,list,watch", "takes the groups of its node as orders"},
		{"Role worker", "stowage.dev", "localsnapshotgroups/status", "update",
			"writes what the driver made of them, to which a policy holds it"},
		{"Role worker", "stowage.dev", "localsnapshots", "get,list,watch", "takes the snapshots of its node as orders"},
		{"Role worker", "stowage.dev", "localsnapshots/status", "update",
			"writes what the driver made of them, to which a policy holds it"},
		{"Role worker", "stowage.dev", "localvolumes", "get,list,watch", "takes the volumes of its node as orders"},
		{"Role worker", "stowage.dev", "localvolumes/status", "update",
			"writes what the driver made of them, to which a policy holds it"},
		{"Role worker", "stowage.dev", "nodestorages", "get", "reads what it has reported"},
		{"Role worker", "stowage.dev", "nodestorages/status", "update",
			"writes which pools the node has, to which a policy holds it"},
	}
}

func TestLocalVolumesRights(t *testing.T) {
	var want, got []string
	for _, r := range localVolumesRights() {
		want = append(want, fmt.Sprintf("%s: %s/%s %s", r.role, r.group, r.resource, r.verbs))
	}
	objects := kustomized(t, localVolumesFolder)
	for _, o := range objects {
		name, ours := strings.CutPrefix(o.GetName(), "stowage-local-")
		if !ours {
			continue
		}
		for _, rule := range rulesOf(t, o) {
			for _, resource := range rule.Resources {
				got = append(got, fmt.Sprintf("%s %s: %s/%s %s", o.GetKind(), name, rule.APIGroups[0], resource,
					strings.Join(rule.Verbs, ",")))
			}
		}
		if strings.HasSuffix(o.GetKind(), "RoleBinding") {
			subjects, role := subjectsOf(t, o)
			account := map[string]string{"stowage-local-master": "stowage-disks-master"}[role]
			if account == "" {
				account = role
			}
			if len(subjects) != 1 || subjects[0] != "ServiceAccount/stowage-system/"+account {
				t.Errorf("%s gives %s to %q", o.id(), role, subjects)
			}
			find(t, objects, subjects[0])
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the rights are\n%s\nand reasons are there for\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestLocalVolumesPods checks that only the driver runs as privileged root, that it has no token, and that the worker
// has a token and, from the node, only the driver's socket.
func TestLocalVolumesPods(t *testing.T) {
	all := pods(t, kustomized(t, localVolumesFolder))
	node := all[localNode]
	if auto := node.Spec.AutomountServiceAccountToken; auto == nil || *auto || node.Spec.HostNetwork {
		t.Errorf("every container has a token (%v), or the host's network: %t", auto, node.Spec.HostNetwork)
	}
	for _, c := range containers(node) {
		checkEveryone(t, localNode, c)
		if has := mounts(c, "api"); has != (c.Name == "worker") {
			t.Errorf("the container %s has a token: %t", c.Name, has)
		}
	}
	driver, worker := container(t, node, "stowage"), container(t, node, "worker")
	checkPrivileged(t, localNode, driver)
	checkFlags(t, localNode, source(t, "driver/options.go"), driver.Args[1:])
	checkTight(t, localNode, node.Spec.SecurityContext, worker)
	checkFlags(t, localNode, managers(t, "volumeworker.go"), worker.Args[1:])
	if len(worker.VolumeMounts) != 2 || !mounts(worker, "plugin") || !worker.VolumeMounts[0].ReadOnly {
		t.Errorf("the worker sees %v", worker.VolumeMounts)
	}
	if !slices.Contains(driver.Args, "--node-id=$(NODE_NAME)") ||
		!slices.Contains(worker.Args, "--node-name=$(NODE_NAME)") {
		t.Errorf("the master knows a node by another name than its driver: %q, %q", driver.Args, worker.Args)
	}
	master := all["Deployment/stowage-system/stowage-disks-master"]
	checkFlags(t, "master", managers(t, "master.go"), container(t, master, "master").Args[1:])
	for _, c := range containers(master) {
		checkEveryone(t, "master", c)
		checkTight(t, "master", master.Spec.SecurityContext, c)
	}
	provisioner := container(t, master, "csi-provisioner")
	if !slices.Contains(provisioner.Args, "--strict-topology=true") {
		t.Error("a volume may be made on another node than its pod's, where the pod is never started")
	}
}

func mounts(c corev1.Container, volume string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
}

// TestLocalVolumesPolicy checks how the policy restricts the workers' right to write.
func TestLocalVolumesPolicy(t *testing.T) {
	objects := kustomized(t, localVolumesFolder)
	found := policies(t, objects, "localvolumes", "*")
	for _, resource := range []string{"localsnapshots", "localsnapshotgroups"} {
		same := policies(t, objects, resource, "*")
		if len(found) != 1 || len(same) != 1 || same[0].Name != found[0].Name {
			t.Fatalf("%d policies are in force for volumes and %d for %s, want one for both", len(found), len(same), resource)
		}
	}
	on := func(node string) map[string]any { return map[string]any{"spec": map[string]any{"node": node}} }
	status := func(pairs ...string) map[string]any {
		all := map[string]any{"found": int64(1), "localVolumes": []any{map[string]any{"name": "disk"}}}
		for pair := range slices.Chunk(pairs, 2) {
			all[pair[0]] = []any{map[string]any{"name": pair[1]}}
		}
		return map[string]any{"status": all}
	}
	const volume, snapshot, group, storage = "LocalVolume", "LocalSnapshot", "LocalSnapshotGroup", "NodeStorage"
	for name, c := range map[string]struct {
		who, node string // of the token; an empty node for none
		operation admission.Operation
		sub, kind string
		from, to  map[string]any
		says      string // empty if it is allowed
	}{
		"its own volume":          {localWorker, "b", admission.Update, "status", volume, on("b"), on("b"), ""},
		"another node's volume":   {localWorker, "a", admission.Update, "status", volume, on("b"), on("b"), "is of node b"},
		"a volume that it claims": {localWorker, "a", admission.Update, "status", volume, on("b"), on("a"), "is of node b"},
		"a token of no node":      {localWorker, "", admission.Update, "status", volume, on("b"), on("b"), "of no node"},
		"its volume's spec":       {localWorker, "b", admission.Update, "", volume, on("b"), on("b"), "nothing else"},
		"create a volume":         {localWorker, "b", admission.Create, "", volume, on("b"), on("b"), "nothing else"},
		"delete its volume":       {localWorker, "b", admission.Delete, "", volume, on("b"), on("b"), "nothing else"},
		"its own snapshot":        {localWorker, "b", admission.Update, "status", snapshot, on("b"), on("b"), ""},
		"another node's snapshot": {localWorker, "a", admission.Update, "status", snapshot, on("b"), on("b"), "is of node b"},
		"its own group":           {localWorker, "b", admission.Update, "status", group, on("b"), on("b"), ""},
		"another node's group":    {localWorker, "a", admission.Update, "status", group, on("b"), on("b"), "is of node b"},
		"its snapshot's spec":     {localWorker, "b", admission.Update, "", snapshot, on("b"), on("b"), "nothing else"},
		"its pools": {localWorker, "a", admission.Update, "status", storage, status(), status("pools", "image"),
			""},
		"its first pools": {localWorker, "a", admission.Update, "status", storage, map[string]any{},
			map[string]any{"status": map[string]any{"pools": []any{}}}, ""},
		"another node's pools": {localWorker, "b", admission.Update, "status", storage, status(), status("pools", "image"),
			"of its own node only"},
		"found disks": {localWorker, "a", admission.Update, "status", storage, status(), status("localVolumes", "mine"),
			"nothing else of its status"},
		"deletions of disks": {localWorker, "a", admission.Update, "status", storage, status(),
			status("deleteOperations", "done"), "nothing else of its status"},
		"its storage's spec": {localWorker, "a", admission.Update, "", storage, status(), status(), "nothing else"},
		"the master": {"system:serviceaccount:stowage-system:stowage-disks-master", "", admission.Update, "", volume,
			on("b"), on("b"), ""},
	} {
		who := &user.DefaultInfo{Name: c.who}
		if c.node != "" {
			who.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {c.node}}
		}
		said := refusalOfOwn(t, found[0], who, c.operation, c.sub, c.kind, c.from, c.to)
		if (said == "") != (c.says == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: the policy says %q, want %q in it", name, said, c.says)
		}
	}
}
