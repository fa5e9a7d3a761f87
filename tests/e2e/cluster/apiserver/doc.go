// Package apiserver reads from a cluster's API server what bringing the cluster up needs, from the host's or the
// cluster's network.
package apiserver
