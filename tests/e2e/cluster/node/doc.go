// Package node runs in the namespaces of one node: containerd, the kubelet and kube-proxy, on their own root
// filesystem. Paths are those of any node, such as /var/lib/kubelet, so that manifests work unchanged. Behind them is
// the node's part of the cluster's data folder. From the host, the node has the programs in /usr, read-only, the
// devices, and the control groups.
package node
