package attach

import (
	"context"
	"errors"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// detach removes attachments until the cloud refuses because there is none, and none can still arrive.
func (m *Machine) detach(ctx context.Context, r Request) error {
	if r.Node != "" {
		return m.detachOne(ctx, r.Volume, r.Node)
	}
	v, err := m.look(ctx, r)
	if err != nil {
		return err
	}
	for _, a := range v.Attachments {
		if err := m.detachOne(ctx, r.Volume, a.Node); err != nil {
			return err
		}
	}
	return m.detachOne(ctx, r.Volume, "") // attachments that the cloud did not show
}

// detachOne removes an attachment, or any if the node is empty. It always sends a request, because only a refusal
// proves that there is none. An accepted detachment has ended when the cloud no longer shows the attachment, and no
// look can be from before the attachment.
func (m *Machine) detachOne(ctx context.Context, volume, node string) error {
	release, err := m.detaching.take(ctx, node)
	if err != nil {
		return err
	}
	defer release()
	for pause := m.options.Settle / 128; ; pause *= 2 {
		sure, age, err := m.release(ctx, volume, node)
		switch {
		case errors.Is(err, ErrNotAttached):
			late, err := m.arrivesLate(ctx, volume, node)
			if err != nil || !late {
				return m.finished(volume, node, err)
			}
			continue
		case err != nil:
			return err
		}
		v, err := m.gone(ctx, volume, node)
		if err != nil || v == nil || sure && m.aged(volume, node, age) {
			return m.finished(volume, node, err)
		}
		if pause > m.options.Settle/64 { // The first look was out of date.
			if err := rest(ctx, pause); err != nil {
				return err
			}
		}
	}
}

// aged reports whether no read can be from before the attachment whose end the cloud has accepted, even if another
// process attached it. The cloud reports the attachment's age, because a read may be from before a young attachment.
func (m *Machine) aged(volume, node string, age time.Duration) bool {
	return node != "" && age > m.options.Settle && !m.begun.lately(volume, node)
}

// finished records that the attachment has ended, unless there was an error.
func (m *Machine) finished(volume, node string, err error) error {
	if err == nil {
		m.begun.forget(volume, node)
		m.over.end(volume, node)
	}
	return err
}

// rest pauses. Kinds: Busy when the context ends first.
func rest(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return failure.Errorf(failure.Busy, "the volume is on its way out: ask again: %w", context.Cause(ctx))
	}
}

// arrivesLate reports whether the cloud shows an attachment whose request was lost. It looks for as long as that
// request may still arrive: until then, a detached volume could be attached again.
func (m *Machine) arrivesLate(ctx context.Context, volume, node string) (bool, error) {
	left := m.begun.late(volume, node)
	if left <= 0 {
		return false, nil
	}
	patience, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	_, err := m.wait(patience, "attach", volume, func(v Volume, err error) (bool, error) { return v.Has(node), err })
	if err != nil && patience.Err() != nil && ctx.Err() == nil {
		return true, nil // The cloud decides.
	}
	return err == nil, err
}

// release requests the end of an attachment and returns its age. If the answer is lost, sure is false, and what the
// cloud shows decides whether the request has arrived.
func (m *Machine) release(ctx context.Context, volume, node string) (sure bool, age time.Duration, err error) {
	m.ended.note(volume, node)
	age, err = flight.Finish(ctx, m.options.Timeout, func(ctx context.Context) (time.Duration, error) {
		return m.cloud.Detach(ctx, volume, node)
	})
	if failure.Is(err, failure.Unavailable) {
		m.ended.lose(volume, node)
	} else {
		m.ended.forget(volume, node)
	}
	if errors.Is(err, ErrNotAttached) || !failure.Is(err, failure.Busy) && !failure.Is(err, failure.Unavailable) {
		return true, age, err
	}
	v, lookErr := m.cloud.Look(ctx, volume)
	v = m.over.without(volume, v)
	if a, ok := v.on(node); lookErr != nil || ok && a.State != Detaching {
		return false, age, err
	}
	return false, age, nil
}

// gone waits until the volume is not attached to the node, and returns the volume's state then. A volume that does not
// exist is attached nowhere: gone returns nil.
func (m *Machine) gone(ctx context.Context, volume, node string) (*Volume, error) {
	there := true
	v, err := m.wait(ctx, "detach", volume, func(v Volume, err error) (bool, error) {
		if failure.Is(err, failure.NotFound) {
			there = false
			return true, nil
		}
		return err == nil && !v.Has(node), err
	})
	if err != nil || !there {
		return nil, err
	}
	return &v, nil
}
