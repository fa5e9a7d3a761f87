package attach

import (
	"context"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/flight"
)

// detach takes attachments away until there is none, and none can come any more. What a detachment ended with is how the whole volume
// was then, with what has come meanwhile: it need not be looked at once more.
func (m *Machine) detach(ctx context.Context, r Request) error {
	for {
		v, err := m.known(ctx, r)
		if err != nil || !v.has(r.Node) {
			return err
		}
		for _, a := range v.Attachments {
			if r.Node != "" && a.Node != r.Node {
				continue
			}
			if r.Seen, err = m.detachOne(ctx, r.Volume, a); err != nil {
				return err
			}
			m.begun.forget(r.Volume, a.Node)
		}
	}
}

// known looks at the volume, unless it was seen before. When an attachment was begun of which nothing is to be seen, it looks for as long as the cloud
// may need to show it: detached now would be attached in a moment.
func (m *Machine) known(ctx context.Context, r Request) (Volume, error) {
	v, err := m.look(ctx, r)
	left := m.begun.left(r.Volume, r.Node)
	if err != nil || v.has(r.Node) || left <= 0 {
		return v, err
	}
	patience, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	late, err := m.cloud.Wait(patience, "attach", r.Volume, func(v Volume, err error) (bool, error) { return v.has(r.Node), err })
	if err != nil && patience.Err() != nil && ctx.Err() == nil {
		return m.cloud.Look(ctx, r.Volume)
	}
	return late, err
}

// has tells whether the volume has an attachment to the node, or to any.
func (v Volume) has(node string) bool {
	return slices.ContainsFunc(v.Attachments, func(a Attachment) bool { return node == "" || a.Node == node })
}

// detachOne takes an attachment away and returns how the volume was seen without it, nil for one that is gone.
func (m *Machine) detachOne(ctx context.Context, volume string, a Attachment) (*Volume, error) {
	release, err := m.detaching.take(ctx, a.Node)
	if err != nil {
		return nil, err
	}
	defer release()
	if a.State != Detaching {
		if err := m.release(ctx, volume, a.Node); err != nil {
			return nil, err
		}
	}
	return m.gone(ctx, volume, a.Node)
}

// release asks for the end of an attachment. When the answer is lost, the cloud is asked what came of it.
func (m *Machine) release(ctx context.Context, volume, node string) error {
	m.ended.note(volume, node)
	_, err := flight.Finish(ctx, m.options.Timeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, m.cloud.Detach(ctx, volume, node)
	})
	if backends.Is(err, backends.Unavailable) {
		m.ended.lose(volume, node)
	} else {
		m.ended.forget(volume, node)
	}
	if !backends.Is(err, backends.Busy) && !backends.Is(err, backends.Unavailable) {
		return err
	}
	v, lookErr := m.cloud.Look(ctx, volume)
	if a, ok := v.on(node); lookErr != nil || ok && a.State != Detaching {
		return err
	}
	return nil
}

// gone waits until the volume is not attached to the node, and returns how it is then. A volume that is not there is attached
// nowhere: nil.
func (m *Machine) gone(ctx context.Context, volume, node string) (*Volume, error) {
	there := true
	v, err := m.cloud.Wait(ctx, "detach", volume, func(v Volume, err error) (bool, error) {
		if backends.Is(err, backends.NotFound) {
			there = false
			return true, nil
		}
		return err == nil && !v.has(node), err
	})
	if err != nil || !there {
		return nil, err
	}
	return &v, nil
}
