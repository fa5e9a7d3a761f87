package local

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/deadline"
)

// poolSilent is the reason of what is told of a pool whose filesystem does not answer.
const poolSilent = "PoolSilent"

// waiting is how long is waited for what may not answer, and what of that was given up and still runs.
type waiting struct {
	limits Limits
	calls  deadline.Calls
}

// look looks at something in a pool's directory, and gives up on a filesystem that does not answer: what is asked of
// others goes on. Until it answers, the next looks at the same pool fail at once. Kinds: Unavailable.
func look[T any](ctx context.Context, w *waiting, path string, work func() T) (T, error) {
	ctx, cancel := context.WithTimeout(w.calls.With(ctx), w.limits.Look)
	defer cancel()
	call := deadline.Call{Name: "looking at " + path}
	return deadline.Do(ctx, call, func(context.Context) (T, error) { return work(), nil }, nil)
}
