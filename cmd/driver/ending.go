package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/driver"
	"github.com/stowage-csi/stowage/pkg/failure"
)

const (
	// closeTime is what is left for the backend if everything before it took its full time.
	closeTime = 2 * time.Second
	// tellTime is how much longer a backend has to report what it leaves unfinished. It is also the minimum time for its
	// end.
	tellTime = 500 * time.Millisecond
	// restOfEnd is the maximum time that the end takes after the requests' grace. Together with that grace, 20 s by
	// default, and twice tellTime, it is less than the 30 s that Kubernetes gives the pod. Whatever takes longer is killed
	// there, without a message.
	restOfEnd = driver.EndTime + flushTime + closeTime
)

// ending is the end of the process. Its parts share one deadline, so that one that hangs takes only the remaining time.
type ending struct {
	limit time.Duration
	once  sync.Once
	until time.Time
}

func newEnding(limit time.Duration) *ending { return &ending{limit: limit} }

// untilStopped returns the result of a command that serves until it is stopped, for which its stop is no failure. Any
// other command that is stopped has failed: its work is not done.
func untilStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// begin starts the end; further calls do nothing.
func (e *ending) begin() { e.once.Do(func() { e.until = time.Now().Add(e.limit) }) }

// close closes the backend, even if no time is left. If the backend does not end by the deadline, the log names the
// unfinished work, which ends with the process: each backend resumes it at its next start.
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
