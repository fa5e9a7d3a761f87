// Package programs builds the programs of a cluster: etcd, Kubernetes and the CSI sidecars from the modules that
// tools/go.mod pins, containerd and runc each from its own module, as upstream builds them. Every program is kept in a
// store under a hash of its inputs.
package programs
