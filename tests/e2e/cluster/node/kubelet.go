package node

import (
	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
)

func (n *self) kubeletFlags() []string {
	return []string{
		"--config=" + kubeletConfig,
		"--kubeconfig=" + n.layout.Config(n.name+".kubeconfig"),
		"--hostname-override=" + n.name,
		"--node-ip=" + layout.NodeAddress(n.number),
		"--v=2",
	}
}

// kubelet differs from a usual configuration in two ways: it copes with the machine's limits (control groups of version
// 1, no CAP_SYS_RESOURCE), and a full disk of the host evicts no pods and no images.
func (n *self) kubelet() map[string]any {
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": n.layout.Certificate("ca.crt")},
		},
		"authorization":               map[string]any{"mode": "Webhook"},
		"tlsCertFile":                 n.layout.Certificate(n.name + ".crt"),
		"tlsPrivateKeyFile":           n.layout.Certificate(n.name + ".key"),
		"cgroupDriver":                "cgroupfs",
		"cgroupRoot":                  "/" + n.layout.Cgroup() + "/" + n.name,
		"failCgroupV1":                false,
		"failSwapOn":                  false,
		"oomScoreAdj":                 0,
		"resolvConf":                  "/etc/resolv.conf",
		"volumePluginDir":             "/var/lib/kubelet/volumeplugins", // The default is in /usr.
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
		"evictionHard": map[string]string{
			"memory.available": "100Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
			"imagefs.available": "0%", "imagefs.inodesFree": "0%",
		},
	}
}
