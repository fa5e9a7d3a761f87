package localvolume

import (
	"context"
	"fmt"
)

// awaitBegun waits for the end of the attempt, as await does. It returns why if the worker has not begun and its node
// is down, or if the worker does not begin within beginsWithin. The order must then be withdrawn.
func (s *orders[O]) awaitBegun(ctx context.Context, o O) (why string, err error) {
	if !isUntouched(o) {
		return "", s.await(ctx, o)
	}
	if why, err := s.down(ctx, nodeOf(o)); err != nil || why != "" {
		return why, err
	}
	patient, cancel := context.WithDeadline(ctx, s.silence.waitsSince(o.GetUID()).Add(beginsWithin))
	defer cancel()
	if err := s.await(patient, o); err == nil || ctx.Err() != nil || patient.Err() == nil {
		return "", err
	}
	var none O
	now, err := s.get(ctx, o.GetName())
	if err != nil || now == none || now.GetUID() != o.GetUID() || !isUntouched(now) {
		return "", err
	}
	s.silence.noteSilent(o.GetUID(), nodeOf(o))
	return fmt.Sprintf("its worker has not begun for %s: look whether it runs", beginsWithin), nil
}
