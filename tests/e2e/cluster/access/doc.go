// Package access lets tests and tools use a cluster that `make cluster-up` brought up. It returns the paths of its
// kubeconfig and kubectl, loads images, and runs commands on its nodes.
package access
