// Package leftovers removes what a cluster leaves behind that the end of its processes does not take along: control
// groups, loop devices and files. It removes only what is provably the cluster's.
package leftovers
