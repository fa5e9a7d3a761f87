// Package ledger remembers which volumes are staged and published where on this node.
//
// The kernel knows what is mounted, and nobody else does: what the ledger says is believed only after the
// kernel was asked about that one path. What the kernel cannot tell is whose mount it is, how it was asked
// for, and whether the call that made it came to its end. Reading the whole mount table for that grows
// with the number of mounts on the node; one small record per volume does not.
//
// A record is written before anything is mounted and removed after everything is unmounted, so that a process killed at
// any instant has left a record of all that it could have left behind. Records are added to a file or replace it by
// rename, are never overwritten, and never synced to disk: a loss of power takes the mounts away too. For the same
// reason a record that was written in another boot of the machine says nothing about this one. Taking down needs no
// room on the disk: what the file says too much of is found to be untrue.
package ledger
