// Command kube is etcd and every program of Kubernetes in one binary, chosen by the name that it is called by:
// one link and one file instead of seven, each of which would hold the same libraries again.
package main
