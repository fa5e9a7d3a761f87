package local

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/deadline"
)

// poolSilent is the reason of what is told of a pool whose filesystem does not answer.
const poolSilent = "PoolSilent"

// look looks at something in a pool's directory, and gives up on a filesystem that does not answer: what is asked of
// others goes on. Until it answers, the next looks at the same pool fail at once. Kinds: Unavailable.
func look[T any](ctx context.Context, e *engine, path string, work func() T) (T, error) {
	ctx, cancel := context.WithTimeout(e.calls.With(ctx), e.limits.Look)
	defer cancel()
	call := deadline.Call{Name: "looking at " + path}
	return deadline.Do(ctx, call, func(context.Context) (T, error) { return work(), nil }, nil)
}
