package driver

import (
	"context"
	"log/slog"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// storageWatchEvery is how often to check the storage. storageWatchTime bounds a check.
const (
	storageWatchEvery = time.Minute
	storageWatchTime  = 30 * time.Second
)

// storageWatch reports in the log and in a metric when storage fails and when it recovers. Probe does not: the kubelet
// restarts a process that is not ready, and no restart brings a disk or a server back.
type storageWatch struct {
	inspect func(context.Context) ([]backends.StorageIssue, error)
	log     *slog.Logger
	count   func(unreachable, degraded int) // sets the metric
	told    map[string]issues               // by reason, as last logged
}

// issues are the issues with one reason.
type issues struct {
	count       int
	unreachable bool
	why         string // the message of one of them
}

// run checks the storage until the context ends.
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

// look reports changes since the last check. A failed check changes nothing.
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

// tell logs each reason whose number of issues or whose reachability has changed. It ignores messages, which may change
// with each check.
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
