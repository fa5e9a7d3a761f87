// Package classes has the StorageClass parameters that the node obeys, whatever the backend: the filesystem, its
// layout, ownership and trimming.
//
// The controller refuses with it, before anything is created, what no node could make. The node makes what it says.
package classes
