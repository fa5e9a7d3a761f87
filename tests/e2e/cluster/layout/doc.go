// Package layout says where everything of a cluster is: the files in its data folder, the addresses in its
// own networks and the names of its nodes. It reads and writes the one file that describes a cluster.
package layout
