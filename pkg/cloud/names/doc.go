// Package names chooses the device names under which clouds such as EC2 attach disks.
//
// The cloud's own answer lists the names that a node has taken, so a restart loses nothing. The package keeps only the
// names of attachments that are being requested, which the cloud cannot list yet. It chooses a recently freed name
// last, since the node may still use it. The same applies to a name that the cloud refused although it seemed free.
package names
