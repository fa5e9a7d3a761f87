// Package nodeview looks at a node from the outside, as an operator with a shell on it does: what volumes and snapshots
// are on its disks, which loop devices serve them, and what is mounted. The tests compare it with what the API says.
package nodeview
