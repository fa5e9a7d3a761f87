package tests

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// clusterOf returns the chart's values for local volumes of a cluster, with more values in the block local and beside
// it.
func clusterOf(local, beside map[string]any) map[string]any {
	values := map[string]any{"local": map[string]any{"mode": "cluster"}}
	maps.Copy(values, beside)
	if block, is := values["local"].(map[string]any); is {
		maps.Copy(block, local)
	}
	return values
}

// TestValuesOfCluster checks the effects of the values for local volumes of a cluster.
func TestValuesOfCluster(t *testing.T) {
	objects := charted(t, clusterOf(map[string]any{
		"dataDir": "/srv/stowage", "config": pools(),
		"nodeSelector": map[string]any{"storage": "yes"}, "tolerations": []any{map[string]any{"key": "storage"}},
		"master": map[string]any{"replicas": 3, "nodeGoneAfter": "90m", "extraArgs": []any{"--node-selector=storage=yes"},
			"nodeSelector": map[string]any{"node-role.kubernetes.io/control-plane": nil, "trusted": "true"},
			"tolerations":  []any{}, "resources": map[string]any{"limits": map[string]any{"memory": "3Gi"}}},
		"disks": map[string]any{"rescan": "5m", "memoryTarget": "1GiB", "mountDirectories": []any{"/mnt/disks", "/srv/found"},
			"resources": map[string]any{"requests": map[string]any{"cpu": "1"}},
			"config": map[string]any{"mountPoints": []any{map[string]any{"paths": []any{"/srv/found/*"}}},
				"devices": []any{map[string]any{"paths": []any{"/dev/disk/by-id/nvme-*"}, "minSize": "100Gi"}}}},
		"workers": map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": "1Gi"}}},
	}, map[string]any{
		"imagePullSecrets": []any{map[string]any{"name": "pull"}}, "log": map[string]any{"level": 5, "format": "json"},
		"metricsPort": 9999, "kubeletDir": "/var/lib/k0s/kubelet", "extraArgs": []any{"--delegate-fsgroup"},
		"podAnnotations": map[string]any{"example": "yes"}, "memoryTarget": "2GiB", "maxOpenFiles": 9000,
	}), false)
	all := pods(t, objects)
	for id, pod := range all {
		_, pinned := pod.Spec.NodeSelector["storage"]
		if pod.Annotations["example"] != "yes" || pinned != strings.HasPrefix(id, "DaemonSet/") ||
			!slices.Equal(pod.Spec.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "pull"}}) {
			t.Errorf("%s: not as the values say: %v, %v", id, pod.Annotations, pod.Spec)
		}
		if pinned && (len(pod.Spec.Tolerations) != 1 || pod.Spec.Tolerations[0].Key != "storage") {
			t.Errorf("%s tolerates %v", id, pod.Spec.Tolerations)
		}
	}
	checkValuesOfNode(t, all[localNode])
	checkValuesOfMaster(t, all[disksMaster])
	checkValuesOfDisks(t, all[disksOpener])
	for id, endpoint := range map[string]string{localNode: "--http-endpoint=:9817", disksAgent: "--http-endpoint=:9816"} {
		worker := container(t, all[id], "worker")
		hasFlags(t, worker, endpoint, "--log-format=json", "--v=5")
		if limit := worker.Resources.Limits.Memory().String(); limit != "1Gi" {
			t.Errorf("%s: the worker has the limit %s", id, limit)
		}
	}
	config := typed(t, find(t, objects, "ConfigMap/stowage-system/stowage-disks-config")).(*corev1.ConfigMap)
	for _, want := range []string{"minSize: 100Gi", "/dev/disk/by-id/nvme-*", "/srv/found/*"} {
		if !strings.Contains(config.Data["disks.yaml"], want) {
			t.Errorf("the rules have no %q:\n%s", want, config.Data["disks.yaml"])
		}
	}
}

// hasFlags checks that a container has flags.
func hasFlags(t *testing.T, c corev1.Container, flags ...string) {
	t.Helper()
	for _, flag := range flags {
		if !slices.Contains(c.Args, flag) {
			t.Errorf("%s has %q: %s is missing", c.Name, c.Args, flag)
		}
	}
}

// hostPaths returns the host paths of a pod, by the volumes' names.
func hostPaths(pod corev1.PodTemplateSpec) map[string]string {
	paths := map[string]string{}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil {
			paths[v.Name] = v.HostPath.Path
		}
	}
	return paths
}

func checkValuesOfNode(t *testing.T, pod corev1.PodTemplateSpec) {
	t.Helper()
	driver := container(t, pod, "stowage")
	hasFlags(t, driver, "--delegate-fsgroup", "--v=5", "--log-format=json", "--http-endpoint=:9999",
		"--data-dir=/srv/stowage", "--max-open-files=9000")
	hasFlags(t, container(t, pod, "node-driver-registrar"),
		"--kubelet-registration-path=/var/lib/k0s/kubelet/plugins/local.csi.stowage.dev/csi.sock")
	checkPools(t, pod, driver)
	if paths := hostPaths(pod); paths["data"] != "/srv/stowage" || paths["kubelet"] != "/var/lib/k0s/kubelet" ||
		!slices.Contains(driver.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "2GiB"}) {
		t.Errorf("the driver sees %v, and has the variables %v", paths, driver.Env)
	}
}

func checkValuesOfMaster(t *testing.T, pod corev1.PodTemplateSpec) {
	t.Helper()
	master := container(t, pod, "master")
	hasFlags(t, master, "--node-gone-after=90m", "--node-selector=storage=yes",
		"--mount-directories=/mnt/disks,/srv/found", "--device-directory=/srv/stowage/disks/links",
		"--log-format=json", "--v=5")
	if want := map[string]string{"kubernetes.io/os": "linux", "trusted": "true"}; len(pod.Spec.Tolerations) != 0 ||
		!maps.Equal(pod.Spec.NodeSelector, want) || master.Resources.Limits.Memory().String() != "3Gi" {
		t.Errorf("the master runs on %v and tolerates %v, with %v", pod.Spec.NodeSelector, pod.Spec.Tolerations,
			master.Resources)
	}
}

func checkValuesOfDisks(t *testing.T, pod corev1.PodTemplateSpec) {
	t.Helper()
	disks := container(t, pod, "disks")
	hasFlags(t, disks, "--rescan=5m", "--data-dir=/srv/stowage/disks", "--link-dir=/run/stowage/disks/links")
	want := map[string]string{"dev": "/dev", "kubelet": "/var/lib/k0s/kubelet", "mounts": "/mnt/disks",
		"mounts-1": "/srv/found", "socket": "/run/stowage/disks", "state": "/srv/stowage/disks"}
	if paths := hostPaths(pod); !maps.Equal(paths, want) || disks.Resources.Requests.Cpu().String() != "1" ||
		!slices.Contains(disks.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "1GiB"}) {
		t.Errorf("who opens disks sees %v, and has %v and %v", paths, disks.Env, disks.Resources)
	}
	for _, m := range disks.VolumeMounts {
		late := m.MountPropagation != nil && *m.MountPropagation == corev1.MountPropagationHostToContainer
		if path := want[m.Name]; path != "" && m.MountPath != path || strings.HasPrefix(m.Name, "mounts") && !late {
			t.Errorf("who opens disks sees %s at %s, and what is mounted later: %t", m.Name, m.MountPath, late)
		}
	}
}

// TestClusterRestarts checks that a change of a configuration restarts exactly the pods that read it.
func TestClusterRestarts(t *testing.T) {
	before := pods(t, charted(t, clusterOf(nil, nil), false))
	rule := map[string]any{"paths": []any{"/dev/disk/by-id/*"}}
	for reader, local := range map[string]map[string]any{
		localNode:   {"config": pools()},
		disksOpener: {"disks": map[string]any{"config": map[string]any{"devices": []any{rule}}}},
	} {
		for id, pod := range pods(t, charted(t, clusterOf(local, nil), false)) {
			if changed := !maps.Equal(pod.Annotations, before[id].Annotations); changed != (id == reader) {
				t.Errorf("%v restarts %s: %t", local, id, changed)
			}
		}
	}
}

// TestClusterWithoutSnapshots checks that no rights remain for a missing sidecar, and none for groups if those are
// disabled. csi-provisioner keeps its rights for restoring.
func TestClusterWithoutSnapshots(t *testing.T) {
	for name, c := range map[string]struct {
		snapshotter map[string]any
		has, groups bool
	}{
		"all":       {map[string]any{}, true, true},
		"no groups": {map[string]any{"groups": false}, true, false},
		"none":      {map[string]any{"enabled": false}, false, false},
	} {
		objects := charted(t, clusterOf(nil, map[string]any{"sidecars": map[string]any{"snapshotter": c.snapshotter}}),
			false)
		i := slices.IndexFunc(pods(t, objects)[disksMaster].Spec.Containers,
			func(c corev1.Container) bool { return c.Name == "csi-snapshotter" })
		if has := i >= 0; has != c.has {
			t.Errorf("%s: there is a snapshotter: %t", name, has)
		}
		if i >= 0 && slices.Contains(pods(t, objects)[disksMaster].Spec.Containers[i].Args,
			"--feature-gates=CSIVolumeGroupSnapshot=true") != c.groups {
			t.Errorf("%s: the snapshotter takes groups: %t", name, !c.groups)
		}
		of := func(list []string, part string) bool {
			return slices.ContainsFunc(list, func(line string) bool { return strings.Contains(line, part) })
		}
		got := granted(t, objects)
		for part, want := range map[string]bool{
			"/volumesnapshotclasses ": c.has, "/volumesnapshotcontents/status ": c.has,
			"/volumesnapshotcontents get,list,watch,patch": c.has, "/volumesnapshotcontents get": true,
			"/volumesnapshots get,list,watch,update": true, "groupsnapshot.storage.k8s.io/": c.groups,
		} {
			if of(got, part) != want {
				t.Errorf("%s: a right to %s is there: %t, want %t", name, part, !want, want)
			}
		}
	}
}

// TestClusterNeeds checks that an invalid combination is not rendered, and that the error names the value.
func TestClusterNeeds(t *testing.T) {
	found := func(path string) map[string]any {
		return map[string]any{"disks": map[string]any{"config": map[string]any{
			"mountPoints": []any{map[string]any{"paths": []any{path}}}}}}
	}
	pool := func(path string) map[string]any {
		return map[string]any{"config": map[string]any{
			"pools": []any{map[string]any{"name": "fast", "type": "image", "path": path}}}}
	}
	for name, c := range map[string]struct {
		local, beside map[string]any
		says          string // empty if it is rendered
	}{
		"as it is":  {nil, nil, ""},
		"a manager": {nil, map[string]any{"manager": map[string]any{"enabled": true}}, "manager.enabled is true"},
		"a part of it": {nil, map[string]any{"manager": map[string]any{"orphans": map[string]any{"enabled": true}}},
			"manager.orphans"},
		"a worker's port":  {nil, map[string]any{"metricsPort": 9817}, "metricsPort is 9817"},
		"the other's port": {nil, map[string]any{"metricsPort": 9816}, "metricsPort is 9816"},
		"the master's":     {nil, map[string]any{"metricsPort": 9815}, "metricsPort"},
		"a port":           {nil, map[string]any{"metricsPort": 9818}, ""},
		"attaching": {nil, map[string]any{"csiDriver": map[string]any{"attachRequired": true}},
			"csiDriver.attachRequired"},
		"no rule": {map[string]any{"disks": map[string]any{"config": map[string]any{"mountPoints": []any{}}}}, nil,
			"local.disks.config has neither"},
		"not offered":      {found("/srv/found/*"), nil, "/srv/found/*"},
		"too deep":         {found("/mnt/disks/a/*"), nil, "local.disks.mountDirectories"},
		"may be one of it": {found("/mnt/*/a"), nil, ""},
		"right below":      {found("/mnt/disks/a"), nil, ""},
		"a pool on what is offered": {pool("/mnt/disks/a"), nil,
			"the pool fast of local.config has the path /mnt/disks/a"},
		"a pool inside it":         {pool("/mnt/disks/a/pool"), nil, "local.disks.mountDirectories"},
		"a pool in another form":   {pool("/mnt//disks/./a"), nil, "local.disks.mountDirectories"},
		"a pool beside it":         {pool("/mnt/disks-fast"), nil, ""},
		"notes on what is offered": {map[string]any{"dataDir": "/mnt/disks/a"}, nil, "local.dataDir is /mnt/disks/a"},
	} {
		if _, err := rendered(clusterOf(c.local, c.beside), false); (err == nil) != (c.says == "") ||
			err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: rendered with %v, want %q in it", name, err, c.says)
		}
	}
	for _, beside := range []int{9816, 9817} { // A pod of a single node has no worker.
		if _, err := rendered(map[string]any{"metricsPort": beside}, false); err != nil {
			t.Error(err)
		}
	}
	if _, err := renderedOn("v1.30.0", clusterOf(nil, nil), false); err == nil || !strings.Contains(err.Error(), "1.31") {
		t.Errorf("on Kubernetes 1.30 it is rendered with %v", err)
	}
}

// TestSchemaOfCluster checks that the chart refuses values that the programs would refuse, before anything is
// installed.
func TestSchemaOfCluster(t *testing.T) {
	disks := func(key string, value any) map[string]any { return map[string]any{"disks": map[string]any{key: value}} }
	rule := func(kind string, more map[string]any) map[string]any {
		one := map[string]any{"paths": []any{"/dev/disk/by-id/*"}}
		maps.Copy(one, more)
		return disks("config", map[string]any{kind: []any{one}})
	}
	master := func(key string, value any) map[string]any {
		return map[string]any{"master": map[string]any{key: value}}
	}
	for name, c := range map[string]struct {
		local   map[string]any
		allowed bool
	}{
		"mode": {map[string]any{"mode": "clustered"}, false},
		"all of a rule": {rule("devices", map[string]any{"minSize": "100Gi", "maxSize": "8Ti", "rotational": false,
			"transports": []any{"nvme"}, "models": []any{"INTEL*"}, "partitions": false, "notBlank": false}), true},
		"a rule's key":      {rule("devices", map[string]any{"size": "1Gi"}), false},
		"a mount's key":     {rule("mountPoints", map[string]any{"rotational": false}), false},
		"another rule":      {disks("config", map[string]any{"folders": []any{}}), false},
		"a transport":       {rule("devices", map[string]any{"transports": []any{"pcie"}}), false},
		"a size":            {rule("devices", map[string]any{"minSize": "100 GB"}), false},
		"no paths":          {rule("devices", map[string]any{"paths": []any{}}), false},
		"no device":         {rule("devices", map[string]any{"paths": []any{"/mnt/*"}}), false},
		"disks' key":        {disks("directories", []any{}), false},
		"not absolute":      {disks("mountDirectories", []any{"mnt"}), false},
		"the root":          {disks("mountDirectories", []any{"/"}), false},
		"with a way up":     {disks("mountDirectories", []any{"/mnt/../etc"}), false},
		"two in one":        {disks("mountDirectories", []any{"/mnt/a,/mnt/b"}), false},
		"a dot at an end":   {disks("mountDirectories", []any{"/mnt/disks", "/mnt/v1.0/.found"}), true},
		"rescan":            {disks("rescan", "often"), false},
		"too often":         {disks("rescan", "500ms"), false},
		"two units":         {disks("rescan", "1m30s"), true},
		"a heap":            {disks("memoryTarget", "256M"), false},
		"never gone":        {master("nodeGoneAfter", "0s"), false},
		"no masters":        {master("replicas", 0), false},
		"a master's key":    {master("hostPID", true), false},
		"the workers' key":  {map[string]any{"workers": map[string]any{"extraArgs": []any{}}}, false},
		"a master's labels": {master("nodeSelector", map[string]any{"trusted": true}), false},
	} {
		if _, err := rendered(clusterOf(c.local, nil), false); (err == nil) != c.allowed {
			t.Errorf("%s: %v is rendered with %v, want it allowed: %t", name, c.local, err, c.allowed)
		}
	}
}

// TestDisksSchema checks that the schema has exactly the keys that the code has for the rules of found disks.
func TestDisksSchema(t *testing.T) {
	text, err := os.ReadFile("../charts/stowage/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	type node struct {
		Properties map[string]node `json:"properties"`
		Items      *node           `json:"items"`
	}
	var schema node
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("../../pkg/disks/discovery/config.go")
	if err != nil {
		t.Fatal(err)
	}
	config := schema.Properties["local"].Properties["disks"].Properties["config"]
	for name, has := range map[string]map[string]node{"Config": config.Properties,
		"DeviceRule": config.Properties["devices"].Items.Properties,
		"MountRule":  config.Properties["mountPoints"].Items.Properties} {
		_, body, _ := strings.Cut(string(code), "\ntype "+name+" struct {\n")
		body, _, _ = strings.Cut(body, "\n}\n")
		var want []string
		for _, match := range regexp.MustCompile("`json:\"(\\w+)").FindAllStringSubmatch(body, -1) {
			want = append(want, match[1])
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(has)); len(want) < 2 || !slices.Equal(got, want) {
			t.Errorf("%s has the keys %q in the schema, and %q in the code", name, got, want)
		}
	}
}
