// Package controlplane is what runs in the outer namespaces of a cluster: etcd, the API server, the controller manager
// and the scheduler, the network between the nodes, and the nodes themselves, each in namespaces inside these.
package controlplane
