// Package pki makes the keys and certificates of a cluster and the kubeconfigs that hold them. They are made anew for
// each cluster, are good for a year and never leave its data folder.
package pki
