package tests

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestSchema checks that the chart refuses unknown values, and backends that do not exist.
func TestSchema(t *testing.T) {
	pool := func(entry map[string]any) map[string]any {
		return map[string]any{"local": map[string]any{"config": map[string]any{"pools": []any{entry}}}}
	}
	for name, values := range map[string]map[string]any{
		"backend to come":    {"backend": "pd"},
		"unknown key":        {"replicaCount": 2},
		"unknown nested key": {"image": map[string]any{"repo": "x"}},
		"level":              {"log": map[string]any{"level": "debug"}},
		"a sidecar's port":   {"metricsPort": 9810},
		"a controller's too": {"metricsPort": 9800}, // of nfs, ten higher
		"the manager's port": {"metricsPort": 9815},
		"manager, unsaid":    {"manager": map[string]any{"replicas": 2}},
		"manager as text":    {"manager": map[string]any{"enabled": "true"}},
		"pool's key":         pool(map[string]any{"name": "a", "type": "image", "size": "1Gi"}),
		"pool's type":        pool(map[string]any{"name": "a", "type": "lvm"}),
		"relative pool":      pool(map[string]any{"name": "a", "type": "image", "path": "srv"}),
		"ebs: clusterId":     ebsConfig(map[string]any{"clusterId": "a"}),
		"ebs: an action": ebsConfig(map[string]any{"rates": map[string]any{"CreateVolumes": map[string]any{"burst": 1,
			"perSecond": 1}}}),
		"ebs: no requests": ebsConfig(map[string]any{"rates": map[string]any{"CreateVolume": map[string]any{"burst": 0,
			"perSecond": 1}}}),
		"ebs: minus one":     ebsConfig(map[string]any{"reservedAttachments": -1}),
		"ebs: period":        {"backend": "ebs", "ebs": map[string]any{"nodeAllocatableUpdatePeriodSeconds": 5}},
		"class without name": {"storageClasses": []any{map[string]any{"parameters": map[string]any{}}}},
		"number as text": {"volumeAttributesClasses": []any{map[string]any{"name": "a",
			"parameters": map[string]any{"readAheadKiB": 4}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := rendered(values, false); err == nil {
				t.Errorf("%v is accepted", values)
			}
		})
	}
}

// TestValues checks the effects of the values.
func TestValues(t *testing.T) {
	objects := charted(t, map[string]any{
		"image":            map[string]any{"repository": "registry.example/stowage", "tag": "v1"},
		"imagePullSecrets": []any{map[string]any{"name": "pull"}},
		"log":              map[string]any{"level": 5, "format": "json"},
		"metricsPort":      9999,
		"kubeletDir":       "/var/lib/k0s/kubelet",
		"hostPID":          true,
		"extraArgs":        []any{"--delegate-fsgroup"},
		"podAnnotations":   map[string]any{"example": "yes"},
		"sidecars": map[string]any{"snapshotter": map[string]any{"enabled": false},
			"provisioner": map[string]any{"extraArgs": []any{"--worker-threads=10"}}},
		"local": map[string]any{"dataDir": "/srv/stowage",
			"nodeSelector": map[string]any{"kubernetes.io/hostname": "edge"}, "config": pools()},
		"storageClasses": []any{map[string]any{"name": "x", "allowVolumeExpansion": false}},
	}, false)
	for _, o := range objects {
		typed(t, o)
		if strings.HasSuffix(o.GetName(), "-snapshotter") {
			t.Errorf("%s is there without a snapshotter", o.id())
		}
	}
	set := typed(t, find(t, objects, "StatefulSet/stowage-system/stowage-local-standalone")).(*appsv1.StatefulSet)
	pod := set.Spec.Template
	driver := container(t, pod, "stowage")
	for what, right := range map[string]bool{
		"image":       driver.Image == "registry.example/stowage:v1",
		"pull secret": slices.Equal(pod.Spec.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "pull"}}),
		"processes":   pod.Spec.HostPID,
		"node": pod.Spec.NodeSelector["kubernetes.io/hostname"] == "edge" &&
			pod.Spec.NodeSelector["kubernetes.io/os"] == "linux",
		"annotation": pod.Annotations["example"] == "yes" && pod.Annotations["prometheus.io/port"] == "9999",
		"no snapshotter": !slices.ContainsFunc(pod.Spec.Containers,
			func(c corev1.Container) bool { return c.Name == "csi-snapshotter" }),
		"metrics port": driver.Ports[0].ContainerPort == 9999,
		"kubelet": slices.Contains(container(t, pod, "node-driver-registrar").Args,
			"--kubelet-registration-path=/var/lib/k0s/kubelet/plugins/local.csi.stowage.dev/csi.sock"),
		"more of sidecar": container(t, pod,
			"csi-provisioner").Args[len(container(t, pod, "csi-provisioner").Args)-1] == "--worker-threads=10",
	} {
		if !right {
			t.Errorf("%s: not as the values say", what)
		}
	}
	for _, flag := range []string{"--delegate-fsgroup", "--v=5", "--log-format=json", "--http-endpoint=:9999",
		"--data-dir=/srv/stowage"} {
		if !slices.Contains(driver.Args, flag) {
			t.Errorf("the driver has %q: %s is missing", driver.Args, flag)
		}
	}
	checkPools(t, pod, driver)
}

func pools() map[string]any {
	return map[string]any{"pools": []any{
		map[string]any{"name": "inside", "type": "image", "path": "/srv/stowage/pools/fast"},
		map[string]any{"name": "outside", "type": "image", "path": "/mnt/nvme/stowage"},
	}}
}

// checkPools checks that a pool outside the data directory is mounted at its own path, and only if the path exists.
func checkPools(t *testing.T, pod corev1.PodTemplateSpec, driver corev1.Container) {
	t.Helper()
	var paths []string
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil && strings.HasPrefix(v.Name, "pool-") {
			paths = append(paths, v.HostPath.Path)
			if *v.HostPath.Type != corev1.HostPathDirectory {
				t.Errorf("%s would be made where a disk is not mounted", v.HostPath.Path)
			}
		}
	}
	if !slices.Equal(paths, []string{"/mnt/nvme/stowage"}) {
		t.Errorf("mounted are the pools %q", paths)
	}
	if !slices.ContainsFunc(driver.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.MountPath == "/mnt/nvme/stowage" && *m.MountPropagation == corev1.MountPropagationHostToContainer
	}) {
		t.Error("the driver does not see the pool")
	}
}

// TestNotes checks that the notes for the user after an installation are complete and match the installation.
func TestNotes(t *testing.T) {
	restart, crds := "rollout restart statefulset stowage-local-standalone", "kubectl apply -k deploy/kubernetes/crds"
	for mode, says := range map[string]map[string]bool{
		"standalone": {"instance=stowage-local\n": true, restart: true, crds: false, "local.master.nodeSelector": false},
		"cluster": {"'app.kubernetes.io/instance in (stowage-local, stowage-disks)'\n": true, restart: false, crds: true,
			"local.master.nodeSelector: kubernetes.io/os, node-role.kubernetes.io/control-plane.\n": true},
	} {
		says["local.csi.stowage.dev"], says["No StorageClass"], says["/var/lib/stowage"] = true, true, true
		notes := templated(t, map[string]any{"local": map[string]any{"mode": mode}}, false)["stowage/templates/NOTES.txt"]
		for part, want := range says {
			if strings.Contains(notes, part) != want {
				t.Errorf("%s: the notes say %q: %t, want %t:\n%s", mode, part, !want, want, notes)
			}
		}
	}
}

// TestShares checks that the configured shares reach the controller and the nodes, and that a node's labels reach its
// driver.
func TestShares(t *testing.T) {
	objects := charted(t, map[string]any{
		"backend": "nfs",
		"nfs": map[string]any{
			"topologyKeys": []any{"topology.kubernetes.io/zone"},
			"config": map[string]any{"shares": []any{map[string]any{
				"name": "a", "server": "nas-a", "share": "/x", "nconnect": 4,
				"topology": map[string]any{"topology.kubernetes.io/zone": "a"},
			}}},
		},
	}, false)
	config := typed(t, find(t, objects, "ConfigMap/stowage-system/stowage-nfs-config")).(*corev1.ConfigMap)
	if text := config.Data["config.yaml"]; !strings.Contains(text, "topology.kubernetes.io/zone: a") {
		t.Errorf("the configuration is %q", text)
	}
	for id, pod := range pods(t, objects) {
		driver := container(t, pod, "stowage")
		if !slices.Contains(driver.Args, "--config=/etc/stowage/config.yaml") || pod.Annotations["checksum/config"] == "" ||
			!slices.ContainsFunc(driver.VolumeMounts,
				func(m corev1.VolumeMount) bool { return m.Name == "config" && m.MountPath == "/etc/stowage" }) ||
			!slices.ContainsFunc(pod.Spec.Volumes,
				func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == config.Name }) {
			t.Errorf("%s has no configuration, or would keep an old one: %q", id, driver.Args)
		}
		if strings.HasPrefix(id, "DaemonSet") != slices.Contains(driver.Args,
			"--topology=topology.kubernetes.io/zone=$(TOPOLOGY_0)") {
			t.Errorf("%s: the driver has %q, want the place on nodes only", id, driver.Args)
		}
		if strings.HasPrefix(id, "DaemonSet") && !slices.ContainsFunc(driver.Env, func(e corev1.EnvVar) bool {
			return e.Name == "TOPOLOGY_0" && e.ValueFrom.FieldRef.FieldPath == "metadata.labels['topology.kubernetes.io/zone']"
		}) {
			t.Errorf("%s: the driver has the variables %v", id, driver.Env)
		}
	}
}
