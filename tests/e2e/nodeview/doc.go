// Package nodeview looks at a node as an operator with a shell on it does: the volumes and snapshots on its disks, the
// loop devices that serve them, and the mounts. The tests compare these with the API.
package nodeview
