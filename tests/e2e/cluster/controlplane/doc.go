// Package controlplane runs in the outer namespaces of a cluster: etcd, the API server, the controller manager, the
// scheduler, the network between the nodes, and the nodes themselves, each in its own inner namespaces.
package controlplane
