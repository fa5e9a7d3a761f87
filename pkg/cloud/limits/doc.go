// Package limits tells how many disks a node can have attached that a backend may attach.
//
// A machine's kind allows so many attachments. On some kinds network interfaces count too, and disks that others
// attached count on all of them: the root disk, and whatever an operator or another driver put there. Both change while
// the node runs, so that a number taken once at start-up is soon wrong in one direction or the other: either pods are
// sent to a node that is full, or a node with room stays empty.
package limits
