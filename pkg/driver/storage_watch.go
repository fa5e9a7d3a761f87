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

// storageWatch says in the log when storage goes, and when it is back. Probe does not: the livenessprobe sidecar has the process
// restarted, and no restart brings a disk or a server back.
type storageWatch struct {
	inspect func(context.Context) ([]backends.StorageIssue, error)
	log     *slog.Logger
	gone    map[string]int // how many things cannot be reached, by reason, as the log has it
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
	issues, err := w.inspect(ctx)
	if err != nil {
		return
	}
	gone, why := map[string]int{}, map[string]string{}
	for _, issue := range issues {
		if issue.Unreachable {
			gone[issue.Reason]++
			why[issue.Reason] = issue.Message
		}
	}
	for reason, count := range gone {
		if w.gone[reason] != count {
			w.log.WarnContext(ctx, "storage cannot be used now; what is elsewhere is served", "reason", reason, "count", count, "why", readable(why[reason]))
		}
	}
	for reason := range w.gone {
		if gone[reason] == 0 {
			w.log.InfoContext(ctx, "storage can be used again", "reason", reason)
		}
	}
	w.gone = gone
}
