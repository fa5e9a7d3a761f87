package attach

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// arrival identifies an attachment under way, so that an older attachment of the volume to the node is not taken for
// it.
type arrival struct {
	node  string
	only  string    // the attachment's ID; empty if unknown
	since time.Time // when it began, by the cloud's clock; zero if unknown
	began bool      // whether the cloud has shown it
}

// is reports whether an attachment is the one that is under way, as far as that is known.
func (r *arrival) is(here Attachment, tick time.Duration) bool {
	return r.only == here.ID || r.only == "" && !r.older(here, tick)
}

// older reports whether an attachment began before the one under way. The cloud may round times to steps, and differ by
// one step.
func (r *arrival) older(here Attachment, tick time.Duration) bool {
	return !r.since.IsZero() && !here.Began.IsZero() && here.Began.Add(tick).Before(r.since)
}

// arrive waits until the volume is attached here, by the attachment with the ID, or by one that began no earlier than
// since. Any other outcome means that this attempt has failed. Kinds: Busy, with the reason, shortly before the caller
// wants its answer.
func (a *attempt) arrive(ctx context.Context, id string, since time.Time) (Attachment, error) {
	r := &arrival{node: a.Node, only: id, since: since}
	patience, cancel := a.m.patience(ctx)
	defer cancel()
	v, err := a.m.wait(patience, "attach", a.Volume,
		func(v Volume, err error) (bool, error) { return a.arrived(r, v, err) })
	if r.began && failure.Is(err, failure.Busy) && patience.Err() != nil && ctx.Err() == nil {
		err = a.stuck(ctx, err)
	}
	here, _ := v.on(a.Node)
	if err == nil && !r.is(here, a.m.options.Tick) { // By the clock, it is older. The cloud decides.
		here, err = a.confirm(ctx)
	}
	if err != nil {
		return Attachment{}, err
	}
	a.m.begun.forget(a.Volume, a.Node)
	return here, nil
}

// arrived reports whether a look settles the outcome.
func (a *attempt) arrived(r *arrival, v Volume, err error) (bool, error) {
	here, ok := v.on(r.node)
	old := ok && !r.is(here, a.m.options.Tick)
	switch {
	case err != nil:
		return false, err
	case old:
		return r.only == "" && here.State == Attached, nil
	case ok && here.State == Attached:
		return true, nil
	case ok && here.State == Attaching:
		r.began = true
	case ok, r.began:
		return false, a.lost()
	}
	return false, nil
}

// lost returns the error for an attachment that did not last.
func (a *attempt) lost() error {
	return failure.Errorf(failure.Unavailable, "volume %q did not stay attached to node %q: ask again", a.Volume, a.Node)
}

// confirm returns the current attachment once it is complete.
func (a *attempt) confirm(ctx context.Context) (Attachment, error) {
	v, err := a.m.now(ctx, a.Volume)
	if err != nil {
		return Attachment{}, err
	}
	here, ok := v.on(a.Node)
	switch {
	case !ok || here.State == Detaching:
		return Attachment{}, a.lost()
	case here.State == Attached:
		return here, nil
	}
	return a.arrive(ctx, here.ID, time.Time{})
}

// now returns how the volume is attached at an instant after the call. If the cloud cannot tell, it returns what the
// cloud shows.
func (m *Machine) now(ctx context.Context, volume string) (Volume, error) {
	if m.options.Now != nil {
		v, err := m.options.Now(ctx, volume)
		if !failure.Is(err, failure.Unsupported) {
			return m.over.without(volume, v), err
		}
	}
	return m.look(ctx, Request{Volume: volume})
}

// see makes the next step start from the current state of the volume.
func (a *attempt) see(ctx context.Context) error {
	v, err := a.m.now(ctx, a.Volume)
	if err == nil {
		a.Seen, a.sure = &v, true
	}
	return err
}

// shown finds out which attachment made the cloud refuse a new one. Kinds: Busy when there is none any more.
func (a *attempt) shown(ctx context.Context, refusal error) error {
	if err := a.see(ctx); err != nil {
		return err
	}
	if len(a.Seen.Attachments) == 0 {
		return failure.Errorf(failure.Busy, "volume %q was in use a moment ago, and where is not shown: ask again: %w",
			a.Volume, refusal)
	}
	return nil
}
