package attach

import (
	"context"
	"errors"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// detach takes attachments away until the cloud refuses because there is none, and none can come any more.
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
	return m.detachOne(ctx, r.Volume, "") // what was not shown
}

// detachOne takes an attachment away, or any if the node is empty. Whatever is shown, the cloud is asked: only its
// refusal proves that there is none. What it accepts has ended when it is not shown any more, and when no look could be
// from before the attachment.
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
		if pause > m.options.Settle/64 { // The first look was old.
			if err := rest(ctx, pause); err != nil {
				return err
			}
		}
	}
}

// aged reports whether no read is from before the attachment, whose end the cloud has accepted: also one that another
// process has made. The cloud says how old it is, since a read may be from before a younger one.
func (m *Machine) aged(volume, node string, age time.Duration) bool {
	return node != "" && age > m.options.Settle && !m.begun.lately(volume, node)
}

// finished takes down that what was attached has ended, unless there was an error.
func (m *Machine) finished(volume, node string, err error) error {
	if err == nil {
		m.begun.forget(volume, node)
		m.over.end(volume, node)
	}
	return err
}

// rest waits, and fails with Busy when the context ends first.
func rest(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return failure.Errorf(failure.Busy, "the volume is on its way out: ask again: %w", context.Cause(ctx))
	}
}

// arrivesLate reports whether an attachment shows of which the request was lost. It looks for as long as that may still
// arrive: detached now would be attached in a moment.
func (m *Machine) arrivesLate(ctx context.Context, volume, node string) (bool, error) {
	left := m.begun.late(volume, node)
	if left <= 0 {
		return false, nil
	}
	patience, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	_, err := m.wait(patience, "attach", volume, func(v Volume, err error) (bool, error) { return v.Has(node), err })
	if err != nil && patience.Err() != nil && ctx.Err() == nil {
		return true, nil // The cloud says what there is now.
	}
	return err == nil, err
}

// release asks for the end of an attachment of that age. When the answer is lost, what is shown reports whether the
// request has arrived; sure is false then.
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

// gone waits until the volume is not attached to the node, and returns how it is then. A volume that is not there is
// attached nowhere: nil.
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
