// Package leftovers removes the remains of a cluster that outlive its processes: control groups, loop devices and
// files. It removes only what is provably the cluster's.
package leftovers
