package localvolume

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// maker implements the parts of a creation that differ between volumes, snapshots and groups.
type maker[O order] interface {
	// begin writes the order and returns its UID, or "" if an order exists by now.
	begin(ctx context.Context) (types.UID, error)
	// fits reports whether an order matches the request and its node was not ruled out.
	fits(o O) bool
	// wait waits for the worker. If it returns no error, the caller must read the order again.
	wait(ctx context.Context, o O) error
	// goElsewhere reports whether to ask another node instead of this one. Why is the reason.
	goElsewhere(node, why string) bool
}

// creation is a call that creates a volume, a snapshot or a group.
type creation[O order] struct {
	*orders[O]
	maker[O]
	handle string
	own    types.UID // of the order that this call wrote
	asked  types.UID // of the order last awaited, unless this call has withdrawn it
}

// run makes a node carry out the order. It asks the nodes that have room, one after the other, until one succeeds.
func (c *creation[O]) run(ctx context.Context) (made O, err error) {
	for {
		o, err := c.get(ctx, c.handle)
		if err != nil {
			return made, err
		}
		if isMade, err := c.goOn(ctx, o); isMade || err != nil {
			return o, err
		}
	}
}

// goOn takes the next step for the order, which is nil if none exists, and waits for the worker. If it returns false
// and no error, the caller must read the order again.
func (c *creation[O]) goOn(ctx context.Context, o O) (isMade bool, err error) {
	var none O
	isFree := o == none
	isStale := !isFree && isGone(o) && c.isStale(o)
	switch {
	// The call that withdrew it may request something else: two calls would withdraw each other's orders in turns.
	case c.asked != "" && (isFree || isStale && o.GetUID() != c.asked):
		return false, backends.Errorf(backends.Busy, "the %s %s was withdrawn by another call beside this one: ask again",
			c.word, c.handle)
	case isFree:
		return false, c.start(ctx)
	case isStale:
		return false, c.replace(ctx, o)
	}
	return c.follow(ctx, o)
}

// isStale reports whether an order that has nothing on its node does not match the request, or is deleted or being
// deleted.
func (c *creation[O]) isStale(o O) bool {
	return o.GetDeletionTimestamp() != nil || isUnwanted(o) || isDeleted(o) || !c.fits(o)
}

// follow waits for the worker and handles its answer.
func (c *creation[O]) follow(ctx context.Context, o O) (isMade bool, err error) {
	if !isUntouched(o) {
		c.silence.noteBegun(o.GetUID(), nodeOf(o))
	}
	switch {
	case isUnwanted(o):
		return false, backends.Errorf(backends.Busy, "the %s %s of this name is being deleted: ask again", c.word, c.handle)
	case isReady(o) && c.own != o.GetUID():
		return false, backends.Errorf(backends.Exists, "a %s of this name is on node %s", c.word, nodeOf(o))
	case isReady(o) && !c.isMade(o):
		return false, backends.Errorf(backends.Unavailable, "the worker of node %s says that the %s %s is ready, and not "+
			"all that there is to say of it: look whether it is of the master's version", nodeOf(o), c.word, c.handle)
	case isReady(o):
		return true, nil
	case hasEnded(o):
		return false, c.refused(ctx, o)
	}
	c.asked = o.GetUID()
	return false, c.wait(ctx, o)
}

// start writes the order.
func (c *creation[O]) start(ctx context.Context) error {
	uid, err := c.begin(ctx)
	if uid != "" {
		c.own = uid
	}
	return err
}

// takeBack withdraws an order for this call.
func (c *creation[O]) takeBack(ctx context.Context, o O) (isRemoved bool, err error) {
	isRemoved, err = c.withdraw(ctx, o)
	if isRemoved {
		c.asked = ""
	}
	return isRemoved, err
}

// replace withdraws a stale order. A worker that reports an order of this call as deleted, although no deletion was
// requested, is not asked again.
func (c *creation[O]) replace(ctx context.Context, o O) error {
	node, isLie := nodeOf(o), isDeleted(o) && !isUnwanted(o) && c.own == o.GetUID() && o.GetDeletionTimestamp() == nil
	if isRemoved, err := c.takeBack(ctx, o); err != nil || !isRemoved || !isLie {
		return err
	}
	const why = "its worker says that it was deleted, which nobody has asked for"
	if c.goElsewhere(node, why) {
		return nil
	}
	return backends.Errorf(backends.Unavailable, "node %s was asked for the %s %s: %s", node, c.word, c.handle, why)
}

// refused handles a refusal by the node's driver. If the driver proves that nothing exists, the order is withdrawn
// before the refusal is returned, so no caller knows of a refused order that still exists. Otherwise the refusal of an
// earlier call is outdated, and the worker is asked again. Anything that the driver may have created nevertheless stays
// there, because it may belong to another.
func (c *creation[O]) refused(ctx context.Context, o O) error {
	_, status := o.Ordered()
	isAbsent := status.State == v1alpha1.StateAbsent
	why := c.whyRefused(o)
	switch {
	case !isAbsent && c.asked != o.GetUID():
		_, err := c.again(ctx, o)
		return err
	case !isAbsent:
		return backends.Errorf(backends.Unusable, "node %s has refused the %s %s, and may have something of that name: %w",
			nodeOf(o), c.word, c.handle, why)
	}
	if isRemoved, err := c.takeBack(ctx, o); err != nil || !isRemoved {
		return err
	}
	if backends.Is(why, backends.Exhausted) && c.goElsewhere(nodeOf(o), status.Message) {
		return nil
	}
	return why
}
