package attach

import (
	"context"
	"fmt"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// patience returns a context that ends shortly before the caller wants its answer. A caller that has left gets no
// reason.
func (m *Machine) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	end, limited := flight.Deadline(ctx)
	if !limited {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, end.Add(-min(time.Until(end)/10, m.options.Settle/64)))
}

// stuck returns the error for an attachment that the cloud shows, and that is not complete when the caller wants its
// answer. After Settle it names the probable cause: a cloud may accept a volume for which the node has no room, and
// never attach it.
//
// The attachment is left alone. A request to end it may arrive late, when the attachment is complete after all, and
// another process has told its caller so: the request would take the volume from its user. The orchestrator ends the
// attachment when nobody wants it any more, and waits until it has ended. Kinds: Busy.
func (a *attempt) stuck(ctx context.Context, because error) error {
	since, shown := a.m.over.shownSince(a.Volume, a.Node)
	if !shown {
		return because
	}
	took := time.Since(since).Round(time.Second)
	if took < a.m.options.Settle {
		return failure.Errorf(failure.Busy, "volume %q is still attaching to node %q after %v: ask again: %w",
			a.Volume, a.Node, took, because)
	}
	return failure.Errorf(failure.Busy, "volume %q has been attaching to node %q%s for %v: the node may have no room for "+
		"it; delete the pod to have the volume detached, and lower the node's limit of volumes: %w",
		a.Volume, a.Node, a.disks(ctx), took, because)
}

// disks says how many disks the node has, if the cloud tells.
func (a *attempt) disks(ctx context.Context) string {
	if a.m.options.Names == nil {
		return ""
	}
	taken, err := a.m.cloud.Taken(ctx, a.Node)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(", which has %d disks with it,", len(taken))
}
