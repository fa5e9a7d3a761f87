// Package ledger remembers which volumes are staged and published on this node, and where.
//
// Only the kernel knows what is mounted. A record is believed only after the kernel was asked about that one path. The
// kernel cannot tell which volume a mount belongs to, how it was requested, or whether the call that made it finished.
// Finding that out from the whole mount table takes time in proportion to the number of mounts on the node; one small
// record per volume does not.
//
// A record is written before anything is mounted and removed after everything is unmounted, so that a process killed at
// any instant has left a record of everything that it could have left behind. A record is appended to its file or
// replaces the file by rename. It is never overwritten, and never synced to disk: a loss of power takes the mounts away
// too. For the same reason a record from another boot of the machine says nothing about this one. Taking a volume down
// needs no room on the disk: a record that claims too much is found to be untrue.
package ledger
