// Package disks keeps the local volumes of one node: it finds them, remembers which were offered, and wipes those that
// are to be offered again (docs/design/018-node-storage.md). It is the part that opens disks: root, without a token.
//
// engine.go holds what is known and wakes who waits for it; scan.go looks for volumes, and links.go keeps a link to
// each device; proof.go acknowledges offers; operation.go carries one deletion out, and dirty.go notes what it leaves
// when it is cut short; family.go keeps wipes apart from what shares their bytes; notes.go has what outlives the
// process.
//
// # What makes it safe
//
//   - A volume that is offered is noted as dirty, durably, before the offer is acknowledged, and so is one that is
//     wiped, before its first byte is. Only a whole wipe makes it clean.
//   - An offer is acknowledged when a look that began after it has found the volume free, and not before.
//   - An operation is noted before it begins, and when it is complete. One that is complete never runs again under its
//     id, whoever asks for it: an agent that reads an old spec wipes nothing twice.
//   - The identity of a device is proven on the open device that is then wiped, which nobody else can mount until it is
//     closed.
package disks
