// Package programs builds what a cluster runs: etcd, Kubernetes and the CSI sidecars from the modules that
// tools/go.mod pins, containerd and runc each from its own module, as their makers build them. Every program is kept
// in a store under a hash of what it is built from.
package programs
