// Package worker is the agent on a node. It passes the offers and requested wipes of the node's NodeStorage to the
// process that opens disks (pkg/disks), and writes that process's findings and results into the object's status
// (docs/design/018-node-storage.md).
//
// It has a token and no disk; `stowage disks` has the disks and no token. The agent only writes the status of its own
// node's object.
//
// plan.go translates between the two, and is pure. agent.go reads and writes.
package worker
