package attach

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/failure"
)

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

// alone is step for one node that is to have a volume which the cloud attaches to several: the cloud refuses nothing
// then. What is there is looked at for certain before the attachment and after it, so that of two who attach at a time
// at least one finds the other. Nobody was told of its own attachment, and it takes that away.
func (a *attempt) alone(ctx context.Context, v Volume, sure bool) (attachment Attachment, decided bool, err error) {
	if !sure {
		return Attachment{}, false, a.see(ctx)
	}
	if other, is := v.elsewhere(a.Node); is {
		if other.State == Detaching {
			_, err = a.m.gone(ctx, a.Volume, other.Node)
			return Attachment{}, false, err
		}
		return Attachment{}, false, a.taken(other)
	}
	if here, is := v.on(a.Node); is && here.State == Attached {
		return here, true, nil
	}
	attachment, decided, err = a.step(ctx, v, sure)
	if !decided || err != nil {
		return Attachment{}, false, err
	}
	if v, err = a.m.now(ctx, a.Volume); err != nil {
		return Attachment{}, false, err
	}
	if other, is := v.elsewhere(a.Node); is {
		if err := a.m.detachOne(ctx, a.Volume, a.Node); err != nil {
			return Attachment{}, false, err
		}
		return Attachment{}, false, failure.Errorf(failure.Busy,
			"volume %q was attached to node %q and to node %q at a time, and is taken from the latter: ask again",
			a.Volume, other.Node, a.Node)
	}
	return attachment, true, nil
}

// see has the next step begin with how the volume is now.
func (a *attempt) see(ctx context.Context) error {
	v, err := a.m.now(ctx, a.Volume)
	if err == nil {
		a.Seen, a.sure = &v, true
	}
	return err
}

// taken says that another node has the volume.
func (a *attempt) taken(other Attachment) error {
	return failure.Errorf(failure.InUse,
		"volume %q is attached to node %q: detach it there before it is attached to node %q", a.Volume, other.Node, a.Node)
}
