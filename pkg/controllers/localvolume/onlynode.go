package localvolume

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// onlyNode implements maker methods for snapshots and groups, which can only be on the node of their volumes.
type onlyNode[O order] struct {
	of     *orders[O]
	silent string // why the node is not waited for
}

// wait waits for the worker. An order that the node does not begin is withdrawn, so that the refusal is final: a
// Kubernetes object with an open outcome could not be deleted.
func (n *onlyNode[O]) wait(ctx context.Context, o O) (err error) {
	n.silent, err = n.of.awaitBegun(ctx, o)
	return err
}

// goElsewhere finds no other node.
func (n *onlyNode[O]) goElsewhere(string, string) bool { return false }

// checkHeard fails if the node did not begin. Kinds: InUse, which is final and retried.
func (n *onlyNode[O]) checkHeard(node string) error {
	if n.silent == "" {
		return nil
	}
	return backends.Errorf(backends.InUse, "node %s has the volume, and no %s was begun: %s", node, n.of.word, n.silent)
}
