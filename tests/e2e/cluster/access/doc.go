// Package access is for tests and tools that use a cluster which `make cluster-up` brought up: where its kubeconfig and
// kubectl are, how to give it an image, and how to run a command on one of its nodes.
package access
