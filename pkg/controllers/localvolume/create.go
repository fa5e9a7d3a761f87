package localvolume

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// maker is what the creations of volumes and of snapshots differ in.
type maker[O order] interface {
	// begin writes the order and returns its UID; none when there is one by now.
	begin(ctx context.Context) (types.UID, error)
	// fits reports whether an order is the one that is wanted, in a place where nobody has refused it.
	fits(o O) bool
	// wait waits for the worker. Without an error the order is to be looked at again.
	wait(ctx context.Context, o O) error
	// goElsewhere reports whether another node is to be asked, after one has had no room and said why.
	goElsewhere(node, why string) bool
}

// creation is a call that makes something.
type creation[O order] struct {
	*orders[O]
	maker[O]
	handle string
	own    types.UID // of the order that this call wrote
	asked  types.UID // of the order that the worker was last asked about, unless this call has withdrawn it
}

// run has a node make it: the first of those that have room, until one of them does.
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

// goOn does what the order asks for, nil for none, and waits for the worker. Unless it is made, and without an error,
// the order is to be looked at again.
func (c *creation[O]) goOn(ctx context.Context, o O) (isMade bool, err error) {
	var none O
	isFree := o == none
	isStale := !isFree && isGone(o) && c.isStale(o)
	switch {
	// Whoever withdrew it may want something else: two would do that in turns.
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

// isStale reports whether an order, of which there is nothing on its node, is not the one that is wanted.
func (c *creation[O]) isStale(o O) bool {
	return o.GetDeletionTimestamp() != nil || isUnwanted(o) || isDeleted(o) || !c.fits(o)
}

// follow waits for the worker, and goes on with its answer.
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

// replace withdraws an order that is not wanted so. A worker that says of one of this call that it was deleted, which
// nobody has asked for, is not asked again.
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

// refused goes on after the node's driver has refused. What it proves not to have is withdrawn before the refusal is
// passed on, so that nobody has heard one that is found. Of other refusals those of earlier calls say nothing any more:
// the worker is asked again. What a driver may have made all the same is left to it: it may be another's.
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
