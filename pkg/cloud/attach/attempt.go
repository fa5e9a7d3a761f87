package attach

import (
	"context"
	"errors"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// attempt is one attachment under way.
type attempt struct {
	Request
	m     *Machine
	avoid []string // device names that the cloud refused although it showed no disk that has them
	sure  bool     // Seen is from after the call began
}

// run takes one step after another until one decides. Each step starts from the cloud's latest answer.
func (a *attempt) run(ctx context.Context) (Attachment, error) {
	if err := a.undisturbed(ctx); err != nil {
		return Attachment{}, err
	}
	for {
		v, err := a.m.look(ctx, a.Request)
		if err != nil {
			return Attachment{}, err
		}
		sure := a.sure
		a.Seen, a.sure = nil, false
		if attachment, decided, err := a.step(ctx, v, sure); decided || err != nil {
			return attachment, err
		}
	}
}

// undisturbed waits until no lost detachment can still arrive: it would end the current attachment as well as the new
// one. Kinds: Busy when the context ends first.
func (a *attempt) undisturbed(ctx context.Context) error {
	if a.m.ended.left(a.Volume, a.Node) > 0 {
		a.Seen = nil // It is out of date after the wait.
	}
	return a.m.ended.wait(ctx, a.Volume, a.Node)
}

// look returns r.Seen if it is set, and looks at the volume otherwise.
func (m *Machine) look(ctx context.Context, r Request) (Volume, error) {
	if r.Seen != nil {
		return m.over.without(r.Volume, *r.Seen), nil
	}
	v, err := m.cloud.Look(ctx, r.Volume)
	return m.over.without(r.Volume, v), err
}

func (a *attempt) step(ctx context.Context, v Volume, sure bool) (attachment Attachment, decided bool, err error) {
	if here, ok := v.on(a.Node); ok {
		return a.here(ctx, here, sure)
	}
	other, isElsewhere := v.elsewhere(a.Node)
	switch {
	case !isElsewhere, v.Shared:
		return a.begin(ctx)
	case other.State == Detaching:
		a.Seen, err = a.m.gone(ctx, a.Volume, other.Node)
		return Attachment{}, false, err
	}
	return Attachment{}, false, failure.Errorf(failure.InUse,
		"volume %q is attached to node %q: detach it there before it is attached to node %q", a.Volume, other.Node, a.Node)
}

// here is step for a volume that the cloud shows as attached here. Unless sure is set, the cloud may show a state from
// before a detachment, which another process may have requested. begin settles that: the cloud refuses it if the volume
// is attached.
func (a *attempt) here(ctx context.Context, here Attachment, sure bool) (_ Attachment, decided bool, err error) {
	switch {
	case here.State == Detaching:
		a.Seen, err = a.m.gone(ctx, a.Volume, a.Node)
		return Attachment{}, false, err
	case here.State == Attached && sure:
		return here, true, nil
	case here.State == Attaching && sure:
		here, err = a.arrive(ctx, here.ID, time.Time{})
		return here, true, err
	case here.State == Attaching: // This includes one that this process requested: another may have ended it since.
		return Attachment{}, false, a.see(ctx)
	}
	here, decided, err = a.begin(ctx)
	if failure.Is(err, failure.Exhausted) {
		return Attachment{}, false, a.see(ctx) // A full node may still have the volume.
	}
	return here, decided, err
}

// begin takes a slot and a device name, requests the attachment, and waits until the cloud shows it.
func (a *attempt) begin(ctx context.Context) (attachment Attachment, decided bool, err error) {
	if err := a.m.over.wait(ctx, a.Volume, a.Node); err != nil {
		return Attachment{}, false, err
	}
	release, err := a.m.attaching.take(ctx, a.Node)
	if err != nil {
		return Attachment{}, false, err
	}
	defer release()
	name, free, err := a.name(ctx)
	if err != nil {
		return Attachment{}, false, err
	}
	defer free()
	a.m.begun.note(a.Volume, a.Node)
	began, err := flight.Finish(ctx, a.m.options.Timeout, func(ctx context.Context) (time.Time, error) {
		return a.m.cloud.Attach(ctx, a.Volume, a.Node, name)
	})
	switch {
	case err == nil:
		a.m.taken.add(a.Node, name)
		attachment, err = a.arrive(ctx, "", began)
		return attachment, true, err
	case errors.Is(err, ErrNameTaken):
		a.m.taken.forget(a.Node)
		a.m.begun.forget(a.Volume, a.Node)
		a.avoid = append(a.avoid, name)
		return Attachment{}, false, a.refused(err)
	case failure.Is(err, failure.InUse):
		return Attachment{}, false, a.shown(ctx, err)
	case failure.Is(err, failure.Unavailable):
		a.m.begun.lose(a.Volume, a.Node)
	default:
		a.m.begun.forget(a.Volume, a.Node)
	}
	return Attachment{}, false, err
}

// mostNames is how many device names a call tries. The cloud shows the names that are taken, except those of the last
// seconds. A cloud that refuses more names may object to something else.
const mostNames = 4

// refused returns nil while another device name is worth a try. Kinds: Unavailable.
func (a *attempt) refused(err error) error {
	if len(a.avoid) < mostNames {
		return nil
	}
	return failure.Errorf(failure.Unavailable,
		"the cloud refused %d device names on node %q: ask again; it refused the last one because: %w", len(a.avoid), a.Node,
		err)
}

// name chooses a device name. Without an Allocator the name is empty.
func (a *attempt) name(ctx context.Context) (name string, free func(), err error) {
	if a.m.options.Names == nil {
		return "", func() {}, nil
	}
	if taken, ok := a.m.taken.names(a.Node, a.m.options.Remember); ok {
		if name, free, err = a.m.options.Names.Reserve(a.Node, taken, a.avoid); err == nil {
			return name, free, nil
		}
	}
	taken, err := a.m.cloud.Taken(ctx, a.Node)
	if err != nil {
		return "", nil, err
	}
	a.m.taken.list(a.Node, taken)
	return a.m.options.Names.Reserve(a.Node, taken, a.avoid)
}
