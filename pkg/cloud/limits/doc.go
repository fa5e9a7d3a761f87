// Package limits computes how many disks a backend may have attached to a node.
//
// A machine type allows a fixed number of attachments. On some types network interfaces count too. Disks that others
// attached count on all types: the root disk, and disks of an operator or another driver. Both numbers change while the
// node runs, so a limit computed once at start-up soon becomes wrong: pods are scheduled to a full node, or a node with
// room stays empty.
package limits
