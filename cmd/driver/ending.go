package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/driver"
	"github.com/stowage-csi/stowage/pkg/failure"
)

const (
	// closeTime is what is left to the backend when all before it took their time.
	closeTime = 2 * time.Second
	// tellTime is how much longer a backend has to say what it leaves, and what it has at least to end in.
	tellTime = 500 * time.Millisecond
	// restOfEnd is how long the end takes after the grace of requests at most. With that grace, 20 s by default, and
	// tellTime twice it is less than the 30 s that Kubernetes gives the pod: what takes longer is killed there, without a
	// word.
	restOfEnd = driver.EndTime + flushTime + closeTime
)

// ending is the end of the process. Its parts have one deadline, so that one that hangs takes no more than what is
// left.
type ending struct {
	limit time.Duration
	once  sync.Once
	until time.Time
}

func newEnding(limit time.Duration) *ending { return &ending{limit: limit} }

// begin begins the end; again it does nothing.
func (e *ending) begin() { e.once.Do(func() { e.until = time.Now().Add(e.limit) }) }

// close closes the backend, also when nothing of the time is left. What has not ended by the deadline is named in the
// log, and ends with the process: each backend takes it up at its next start.
func (e *ending) close(ctx context.Context, closer func(context.Context) error, log *slog.Logger) error {
	e.begin()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(time.Until(e.until), tellTime))
	defer cancel()
	err := deadline.Run(ctx, deadline.Call{Name: "closing the backend", Grace: tellTime}, closer)
	if err != nil && (ctx.Err() != nil || backends.Is(err, backends.Busy)) {
		log.Warn("stopping without waiting any longer", "for", failure.OneLine(err))
		return nil
	}
	return err
}
