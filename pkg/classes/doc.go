// Package classes has the StorageClass parameters that the node implements for all backends: the filesystem, its
// layout, ownership and trimming.
//
// With it, the controller refuses settings that no node could implement before anything is created.
package classes
