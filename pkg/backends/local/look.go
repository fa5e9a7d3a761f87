package local

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/deadline"
)

// poolSilent is the reason of issues with a pool whose filesystem does not answer.
const poolSilent = "PoolSilent"

// waiting has the time limits for filesystems that may not answer, and the calls that were given up and still run.
type waiting struct {
	limits Limits
	calls  deadline.Calls
}

// look runs work, which looks at a pool's directory. It gives up on a filesystem that does not answer, so that work on
// others goes on. Until the filesystem answers, further looks at the same pool fail at once. Kinds: Unavailable.
func look[T any](ctx context.Context, w *waiting, path string, work func() T) (T, error) {
	ctx, cancel := context.WithTimeout(w.calls.With(ctx), w.limits.Look)
	defer cancel()
	call := deadline.Call{Name: "looking at " + path}
	return deadline.Do(ctx, call, func(context.Context) (T, error) { return work(), nil }, nil)
}
