package attach

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// arrival is an attachment under way, of which an older one of the volume to the node is not to be taken for.
type arrival struct {
	node  string
	only  string    // its ID; empty if that is not known
	since time.Time // when it began, by the cloud's clock; zero if that is not known
	began bool      // whether it was shown
}

// is reports whether an attachment is the one, as far as that is known.
func (r *arrival) is(here Attachment, tick time.Duration) bool {
	return r.only == here.ID || r.only == "" && !r.older(here, tick)
}

// older reports whether an attachment began before the one. The cloud may tell times in steps, and differ by one.
func (r *arrival) older(here Attachment, tick time.Duration) bool {
	return !r.since.IsZero() && !here.Began.IsZero() && here.Began.Add(tick).Before(r.since)
}

// arrive waits until the volume is attached here, by the attachment with the ID, or by one that began no earlier.
// Attaching that ends otherwise has failed, for now.
func (a *attempt) arrive(ctx context.Context, id string, since time.Time) (Attachment, error) {
	r := &arrival{node: a.Node, only: id, since: since}
	v, err := a.m.wait(ctx, "attach", a.Volume, func(v Volume, err error) (bool, error) { return a.arrived(r, v, err) })
	here, _ := v.on(a.Node)
	if err == nil && !r.is(here, a.m.options.Tick) { // It is older by the clock. The cloud decides.
		here, err = a.confirm(ctx)
	}
	if err != nil {
		return Attachment{}, err
	}
	a.m.begun.forget(a.Volume, a.Node)
	return here, nil
}

// arrived reports whether a look decides.
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

// lost says that the attachment has come to nothing.
func (a *attempt) lost() error {
	return failure.Errorf(failure.Unavailable, "volume %q did not stay attached to node %q: ask again", a.Volume, a.Node)
}

// confirm returns the attachment that is there now, once it is whole.
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

// now is how a volume is attached at an instant after the call, or as it is shown where the cloud cannot tell.
func (m *Machine) now(ctx context.Context, volume string) (Volume, error) {
	if m.options.Now != nil {
		v, err := m.options.Now(ctx, volume)
		if !failure.Is(err, failure.Unsupported) {
			return m.over.without(volume, v), err
		}
	}
	return m.look(ctx, Request{Volume: volume})
}

// see has the next step begin with how the volume is now.
func (a *attempt) see(ctx context.Context) error {
	v, err := a.m.now(ctx, a.Volume)
	if err == nil {
		a.Seen, a.sure = &v, true
	}
	return err
}

// shown finds out for whose sake the cloud has refused an attachment. Kinds: Busy when there is none any more.
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
