package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// right is one rule of a role and its reason. The verbs come from the source of each sidecar at the installed version.
type right struct {
	role, group, resource, verbs string
	why                          string
}

// rights returns all rights of Stowage in a cluster. A rule that is not listed, or has no reason, fails the test.
func rights() []right {
	const core = ""
	return []right{
		{"provisioner", core, "persistentvolumes", "get,list,watch,create,patch,delete",
			"makes the volume of a claim, finds the source of a clone, removes released volumes and holds them by a finalizer " +
				"until then"},
		{"provisioner", core, "persistentvolumeclaims", "list,watch,update",
			"takes claims as orders; holds the source of a clone by a finalizer; gives a claim back to the scheduler when its " +
				"node has no room"},
		{"provisioner", core, "events", "create,patch", "tells the claim what went wrong"},
		{"provisioner", core, "nodes", "list,watch", "reads the topology labels of nodes"},
		{"provisioner", "storage.k8s.io", "csinodes", "list,watch", "reads which labels are a driver's topology keys"},
		{"provisioner", "storage.k8s.io", "storageclasses", "list,watch",
			"reads a class's parameters, and for which classes to publish capacity"},
		{"provisioner", "storage.k8s.io", "volumeattributesclasses", "get", "reads the parameters of the claim's class"},
		{"provisioner", "snapshot.storage.k8s.io", "volumesnapshots", "get,list,watch,update",
			"restores; holds the snapshot by a finalizer meanwhile, and sweeps finalizers that were left"},
		{"provisioner", "snapshot.storage.k8s.io", "volumesnapshotcontents", "get", "reads the snapshot's handle"},

		{"resizer", core, "persistentvolumes", "list,watch,patch", "writes the new size, or the class that was applied"},
		{"resizer", core, "persistentvolumeclaims", "list,watch", "sees what claims ask for"},
		{"resizer", core, "persistentvolumeclaims/status", "patch", "writes how far it is"},
		{"resizer", core, "pods", "list,watch", "waits with an offline resize until no pod uses the volume"},
		{"resizer", core, "events", "create,patch", "tells the claim what went wrong"},
		{"resizer", "storage.k8s.io", "volumeattributesclasses", "list,watch", "reads the parameters to apply"},

		{"snapshotter", "snapshot.storage.k8s.io", "volumesnapshotclasses", "list,watch", "reads the parameters"},
		{"snapshotter", "snapshot.storage.k8s.io", "volumesnapshotcontents", "get,list,watch,patch",
			"takes contents as orders, and marks those at work by annotations"},
		{"snapshotter", "snapshot.storage.k8s.io", "volumesnapshotcontents/status", "update,patch",
			"writes handle, size and readiness"},
		{"snapshotter", "groupsnapshot.storage.k8s.io", "volumegroupsnapshotclasses", "list,watch", "reads the parameters"},
		{"snapshotter", "groupsnapshot.storage.k8s.io", "volumegroupsnapshotcontents", "get,list,watch,patch",
			"takes contents as orders, and marks those at work by annotations"},
		{"snapshotter", "groupsnapshot.storage.k8s.io", "volumegroupsnapshotcontents/status", "update,patch",
			"writes the members' handles and readiness"},
		{"snapshotter", core, "events", "create,patch", "tells the content what went wrong"},

		{"attacher", core, "persistentvolumes", "list,watch,patch", "holds an attached volume by a finalizer"},
		{"attacher", "storage.k8s.io", "csinodes", "list,watch", "reads the node's ID as the driver knows it"},
		{"attacher", "storage.k8s.io", "volumeattachments", "list,watch,patch",
			"takes attachments as orders and holds them by a finalizer; csi-provisioner removes no volume that is attached"},
		{"attacher", "storage.k8s.io", "volumeattachments/status", "patch", "writes the outcome"},

		{"capacity", "storage.k8s.io", "csistoragecapacities", "list,watch,create,update,delete",
			"publishes the room of the pools"},
		{"capacity", core, "pods", "get", "finds the owner of its own pod, which the published objects then belong to"},

		{"manager", "stowage.dev", "persistentvolumesets", "get,list,watch,update",
			"takes sets as orders, reads one past its cache before it asks for a volume, and holds one by a finalizer until " +
				"its unbound volumes are gone"},
		{"manager", "stowage.dev", "persistentvolumesets/status", "update",
			"writes the volumes that it is about to create, and what there is"},
		{"manager", core, "persistentvolumes", "get,list,watch,create,update,delete",
			"counts the volumes of sets, creates them, deletes unbound ones, and removes its finalizer once the driver has " +
				"deleted the volume"},
		{"manager", core, "persistentvolumes/status", "update", "writes the phase of a volume that it binds"},
		{"manager", core, "persistentvolumeclaims", "get,list,watch,update",
			"takes pending claims as orders, and writes the volume that it binds"},
		{"manager", core, "persistentvolumeclaims/status", "update",
			"writes that a claim is bound, and the size that it got"},
		{"manager", "events.k8s.io", "events", "create,patch",
			"tells a volume that its binding was undone or why it is not deleted, and a set what it lacks or leaves"},
		{"manager", "storage.k8s.io", "storageclasses", "list,watch", "reads the parameters of a set's class"},
		{"manager", "storage.k8s.io", "volumeattributesclasses", "get", "reads the parameters of a template's class"},
		{"manager", "storage.k8s.io", "csinodes", "list,watch", "reads which labels are the driver's topology keys"},
		{"manager", core, "nodes", "list,watch", "reads the topology labels of nodes"},
		{"manager-election", "coordination.k8s.io", "leases", "get,create,update", "of the managers of a driver, one acts"},
		{"manager-election", core, "events", "create,patch", "tells the lease which manager leads"},

		{"orphans", "storage.k8s.io", "volumeattachments", "list,watch,create,delete",
			"knows what Kubernetes believes to be attached; writes and deletes the attachment by which csi-attacher detaches"},
		{"orphans", core, "nodes", "get", "asks whether a node's kubelet reports a volume in use"},

		{"failover", core, "nodes", "get,patch",
			"reads a node past its cache, and writes its taint out-of-service, to which a policy holds it"},
		{"failover", "storage.k8s.io", "csinodes", "get,list",
			"reads past its cache which machine a node has registered as"},
		{"failover", core, "pods", "list,delete",
			"tells of pods that tolerate the taint, and deletes for good those that are evicted, to which a policy holds it"},
		{"failover", "storage.k8s.io", "volumeattachments", "list,watch,delete",
			"deletes those of nodes that are gone, of its own driver, to which a policy holds it; finds a machine's node"},
		{"failover-leases", "coordination.k8s.io", "leases", "get,list,watch", "sees each node's signs of life"},

		{"startup", core, "nodes", "get,patch",
			"reads a node past its cache, and removes its startup taint, to which a policy holds it"},
		{"startup", "storage.k8s.io", "csinodes", "get", "reads past its cache whether the driver has registered"},

		{"cluster", core, "namespaces/kube-system only", "get",
			"tells this cluster's things in AWS from those of others by its UID"},
		{"node", core, "nodes", "get",
			"reads its instance from spec.providerID of its Node, where a pod does not reach the instance's metadata service " +
				"(a hop limit of 1)"},

		{"leader-election", "coordination.k8s.io", "leases", "get,create,update", "of the replicas of a sidecar, one acts"},
	}
}

// roles returns the roles of an installation with their kinds.
func (in install) roles() map[string]string {
	roles := map[string]string{"provisioner": "ClusterRole", "resizer": "ClusterRole", "snapshotter": "ClusterRole"}
	switch in.backend {
	case "local":
		roles["capacity"] = "Role"
	case "attaching":
		roles["attacher"], roles["leader-election"] = "ClusterRole", "Role"
	case "ebs":
		roles["attacher"], roles["leader-election"], roles["node"], roles["cluster"] = "ClusterRole", "Role", "ClusterRole",
			"ClusterRole"
	default:
		roles["leader-election"] = "Role"
	}
	if in.manager {
		roles["manager"], roles["manager-election"] = "ClusterRole", "Role"
	}
	if in.orphans {
		roles["orphans"] = "ClusterRole"
	}
	if in.failover {
		roles["failover"], roles["failover-leases"] = "ClusterRole", "Role"
	}
	if in.startup {
		roles["startup"] = "ClusterRole"
	}
	return roles
}

// wanted returns the lines of the tables that apply to an installation, in the form of granted. Only local takes
// snapshots of groups without being asked to.
func (in install) wanted() (list []string) {
	line := func(kind, name string, r right) {
		list = append(list, fmt.Sprintf("%s %s: %s/%s %s", kind, name, r.group, r.resource, r.verbs))
	}
	if in.cluster {
		for name, table := range map[string][]right{"local": localVolumesRights(), "disks": disksRights()} {
			for _, r := range table {
				kind, role, _ := strings.Cut(r.role, " ")
				line(kind, "stowage-"+name+"-"+role, r)
			}
		}
		return list
	}
	for role, kind := range in.roles() {
		for _, r := range rights() {
			if r.role == role && (r.group != "groupsnapshot.storage.k8s.io" || in.backend == "local") {
				line(kind, "stowage-"+in.backend+"-"+role, r)
			}
		}
	}
	return list
}

func TestRights(t *testing.T) {
	for _, r := range slices.Concat(rights(), localVolumesRights(), disksRights()) {
		if len(strings.Fields(r.why)) < 2 {
			t.Errorf("%s %s of %s has no reason", r.verbs, r.resource, r.role)
		}
	}
	for _, in := range installs() {
		t.Run(in.name, func(t *testing.T) {
			want, got := in.wanted(), granted(t, kustomized(t, in.folder))
			slices.Sort(want)
			slices.Sort(got)
			for _, rule := range got {
				if !slices.Contains(want, rule) {
					t.Errorf("nobody gave a reason for %s", rule)
				}
			}
			for _, rule := range want {
				if !slices.Contains(got, rule) {
					t.Errorf("missing: %s", rule)
				}
			}
			if len(got) != len(want) {
				t.Errorf("there are %d rules: want %d", len(got), len(want))
			}
		})
	}
}

// granted lists the rules of all roles, one line for each resource.
func granted(t *testing.T, objects []object) []string {
	t.Helper()
	var list []string
	for _, o := range objects {
		rules := rulesOf(t, o)
		if len(rules) == 0 {
			continue
		}
		for _, rule := range rules {
			if len(rule.NonResourceURLs) > 0 || len(rule.APIGroups) != 1 {
				t.Errorf("%s has a rule of a form that the table cannot say: %v", o.id(), rule)
			}
			for _, resource := range rule.Resources {
				if len(rule.ResourceNames) > 0 {
					resource += "/" + strings.Join(rule.ResourceNames, ",") + " only"
				}
				list = append(list, fmt.Sprintf("%s %s: %s/%s %s", o.GetKind(), o.GetName(), rule.APIGroups[0], resource,
					strings.Join(rule.Verbs, ",")))
			}
		}
	}
	return list
}

// rulesOf returns the rules of a role, and none for other objects.
func rulesOf(t *testing.T, o object) []rbacv1.PolicyRule {
	t.Helper()
	switch role := typed(t, o).(type) {
	case *rbacv1.ClusterRole:
		if role.AggregationRule != nil {
			t.Errorf("%s takes in other roles", o.id())
		}
		return role.Rules
	case *rbacv1.Role:
		return role.Rules
	}
	return nil
}

// holder returns the account that has a role: the node's account has the node's role, and the controller's account has
// all others. For local volumes of a cluster each role belongs to the account of its name, and both roles of a master
// to the one master.
func (in install) holder(role string) string {
	switch {
	case in.cluster && role == "stowage-local-master":
		return "stowage-disks-master"
	case in.cluster || role == "stowage-"+in.backend+"-node":
		return role
	default:
		return in.account()
	}
}

// TestBindings checks that exactly the intended accounts have the roles.
func TestBindings(t *testing.T) {
	for _, in := range installs() {
		t.Run(in.name, func(t *testing.T) {
			objects := kustomized(t, in.folder)
			for _, o := range objects {
				var subjects []rbacv1.Subject
				switch binding := typed(t, o).(type) {
				case *rbacv1.ClusterRoleBinding:
					subjects = binding.Subjects
				case *rbacv1.RoleBinding:
					subjects = binding.Subjects
				default:
					continue
				}
				account := in.holder(o.GetName())
				want := rbacv1.Subject{Kind: "ServiceAccount", Name: account, Namespace: "stowage-system"}
				if len(subjects) != 1 || subjects[0] != want {
					t.Errorf("%s: %v: want %v only", o.id(), subjects, want)
				}
				find(t, objects, "ServiceAccount/stowage-system/"+account)
			}
		})
	}
}
