// Package pools is the form in which a driver tells, at its socket and beside CSI, of the pools that its volumes are
// taken from.
//
// CSI asks for the capacity of a class, and so by the names of pools that somebody has to know. A master that chooses
// between nodes knows none: so the worker of a node asks the driver there, and reports what it says. package driver
// answers and csiclient asks, in a map (a protobuf Struct) as package machines does.
package pools
