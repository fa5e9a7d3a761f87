// Package worker is the agent on a node: it tells the process that opens disks (pkg/disks) what the node's NodeStorage
// offers and wants wiped, and writes to the object's status what that process found and did
// (docs/design/018-node-storage.md).
//
// It has a token and no disk; `stowage disks` has the disks and no token. The agent writes the status of its own node's
// object and nothing else.
//
// plan.go translates between the two, and is pure. agent.go reads and writes.
package worker
