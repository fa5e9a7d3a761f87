// Package names chooses the device names under which clouds such as EC2 want disks to be attached.
//
// The cloud's own answer says which names a node has taken, so that a restart forgets nothing. Only what the cloud
// cannot say yet is kept here: the names of attachments that are being asked for. A name that was freed lately is
// chosen last, since the node may not have let go of it, and so is one that the cloud refused although it seemed free.
package names
