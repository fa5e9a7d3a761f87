// Package pools defines how a driver reports, at its socket and besides CSI, the pools that its volumes are taken from.
//
// CSI reports the capacity of a class, and so requires the caller to know the names of the pools. A master that chooses
// between nodes does not know them. So the worker of a node asks its driver and reports the answer. Package driver
// answers and csiclient asks, in a map (a protobuf Struct) as package machines does.
package pools
