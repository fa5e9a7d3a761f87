// Package layout defines the files in a cluster's data folder, the addresses in its own networks, and the names of its
// nodes. It reads and writes the file that describes a cluster.
package layout
