package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/images"
	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
)

const (
	containerdConfig = "/etc/containerd/config.toml"
	containerdSocket = "/run/containerd/containerd.sock"
	networkConfig    = "/etc/cni/net.d/10-stowage.conflist"
	kubeletConfig    = "/etc/kubernetes/kubelet.json"
	proxyConfig      = "/etc/kubernetes/proxy.json"
)

// configure writes the components' configurations.
func (n *self) configure() error {
	if err := write(containerdConfig, []byte(n.containerd())); err != nil {
		return err
	}
	for path, value := range map[string]any{
		networkConfig: n.cni(), kubeletConfig: n.kubelet(), proxyConfig: n.proxy(),
	} {
		text, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			return err
		}
		if err := write(path, text); err != nil {
			return err
		}
	}
	return nil
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// containerd cannot lower a process's OOM score where it lacks CAP_SYS_RESOURCE.
func (n *self) containerd() string {
	return fmt.Sprintf(`version = 3
[grpc]
  address = %q
[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %q
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/usr/lib/cni']
  conf_dir = %q
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = %q
  SystemdCgroup = false
`, containerdSocket, images.Pause, filepath.Dir(networkConfig), n.layout.Program("runc"))
}

// cni connects each pod to the node, which routes: replies of a Service then return through the Service.
func (n *self) cni() map[string]any {
	return map[string]any{
		"cniVersion": "1.0.0", "name": "stowage",
		"plugins": []map[string]any{
			{
				"type": "ptp", "mtu": 1500,
				"ipam": map[string]any{
					"type": "host-local", "dataDir": "/run/cni",
					"ranges": [][]map[string]any{{{"subnet": layout.PodRange(n.number)}}},
					"routes": []map[string]any{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": map[string]any{"portMappings": true}},
		},
	}
}

// proxy does not change the limits of connection tracking, which apply to the whole machine.
func (n *self) proxy() map[string]any {
	return map[string]any{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode": "iptables", "clusterCIDR": layout.Pods, "hostnameOverride": n.name,
		"clientConnection": map[string]any{"kubeconfig": n.layout.Config("proxy.kubeconfig")},
		"conntrack": map[string]any{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s",
			"tcpCloseWaitTimeout": "0s"},
	}
}
