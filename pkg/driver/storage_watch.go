package driver

import (
	"context"
	"log/slog"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// storageWatchEvery is how often the storage is looked at, and storageWatchTime for how long at most.
const (
	storageWatchEvery = time.Minute
	storageWatchTime  = 30 * time.Second
)

// storageWatch says in the log and in a metric when storage goes, and when it is back. Probe does not:
// the kubelet restarts a process that is not ready, and no restart brings a disk or a server back.
type storageWatch struct {
	inspect func(context.Context) ([]backends.StorageIssue, error)
	log     *slog.Logger
	count   func(unreachable, degraded int) // of the metric
	told    map[string]issues               // by reason, as the log has them
}

// issues are those of one reason.
type issues struct {
	count       int
	unreachable bool
	why         string // of one of them
}

// run looks until the context ends.
func (w *storageWatch) run(ctx context.Context) {
	ticker := time.NewTicker(storageWatchEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		w.look(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// look tells what has changed since it last looked. When it cannot be told, nothing has.
func (w *storageWatch) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storageWatchTime)
	defer cancel()
	found, err := w.inspect(ctx)
	if err != nil {
		return
	}
	now, unreachable := map[string]issues{}, 0
	for _, f := range found {
		of := now[f.Reason]
		now[f.Reason] = issues{count: of.count + 1, unreachable: of.unreachable || f.Unreachable, why: f.Message}
		if f.Unreachable {
			unreachable++
		}
	}
	w.count(unreachable, len(found)-unreachable)
	w.tell(ctx, now)
	w.told = now
}

// tell logs in which reasons there are more or fewer issues than before. Why they are may change with each look.
func (w *storageWatch) tell(ctx context.Context, now map[string]issues) {
	for reason, of := range now {
		message := "storage is not as it should be"
		if of.unreachable {
			message = "storage cannot be used now; what is elsewhere is served"
		}
		if before := w.told[reason]; before.count != of.count || before.unreachable != of.unreachable {
			w.log.WarnContext(ctx, message, "reason", reason, "count", of.count, "why", readable(of.why))
		}
	}
	for reason := range w.told {
		if now[reason].count == 0 {
			w.log.InfoContext(ctx, "storage is well again", "reason", reason)
		}
	}
}
