// Command kube contains etcd and every program of Kubernetes in one binary, and runs the one with the name that it is
// called by. Linking one binary instead of seven avoids seven copies of the same libraries.
package main
