// Package pki creates the keys and certificates of a cluster, and the kubeconfigs that contain them. Each cluster has
// new ones. They are valid for a year and never leave its data folder.
package pki
