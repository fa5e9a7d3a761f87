// Package node is what runs in the namespaces of one node: containerd, the kubelet and kube-proxy, on a root filesystem
// of their own. Paths are those of any node, such as /var/lib/kubelet, so that manifests work here as they do
// elsewhere; behind them is the node's part of the cluster's data folder. Of the host it has the programs in /usr, to
// read, the devices and the control groups.
package node
