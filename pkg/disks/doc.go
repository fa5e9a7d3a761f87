// Package disks manages the local volumes of one node. It finds them, remembers which were offered, and wipes those
// that are to be offered again (docs/design/018-node-storage.md). It is the part that opens disks: root, without a
// token.
//
// engine.go holds the state and wakes callers that wait for changes; scan.go looks for volumes, and links.go keeps a
// link to each device; proof.go acknowledges offers; operation.go carries out one deletion, and dirty.go notes what it
// leaves if it is cut short; family.go keeps wipes away from volumes that share their bytes; source.go refuses an agent
// with an old cache; notes.go has the state that outlives the process.
//
// # What makes it safe
//
//   - A volume that is offered is durably noted as dirty before the offer is acknowledged. So is a volume that is
//     wiped, before its first byte is. Only a complete wipe makes it clean.
//   - An offer is acknowledged only after a look that began after it has found the volume free.
//   - An operation is noted before it begins, and when it is complete. A complete operation never runs again under its
//     id, whoever asks for it: an agent that reads an old spec wipes nothing twice.
//   - The identity of a device is proven on the open device that is then wiped, which nobody else can mount until it is
//     closed.
package disks
