package driver

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// refusalsEvery and refusalBurst are how many refusals are logged: those of a large node that is drained, and then ten
// a second.
const (
	refusalsEvery = 100 * time.Millisecond
	refusalBurst  = 500
)

// failuresEvery and failureBurst are how many failures of a method with one code are logged. There are more to a
// failure than to a refusal, and the stack of a panic is several kilobytes, but a hundred of one kind tell all.
const (
	failuresEvery = time.Second
	failureBurst  = 100
)

// logLimits bound how much is logged of requests that do not succeed: a caller that asks again without a pause must not
// fill the node's disk. The metrics count them all.
type logLimits struct {
	refusals *logLimit
	mu       sync.Mutex
	failures map[flood]*logLimit // as many as there are methods and codes
}

// flood is what may come again and again: what is logged of other calls goes on beside it.
type flood struct{ method, code string }

// logLimit lets the first of each burst be logged.
type logLimit struct {
	allowed *rate.Limiter
	omitted atomic.Int64
}

func newLogLimits() *logLimits {
	return &logLimits{refusals: newLogLimit(refusalsEvery, refusalBurst), failures: map[flood]*logLimit{}}
}

func newLogLimit(every time.Duration, burst int) *logLimit {
	return &logLimit{allowed: rate.NewLimiter(rate.Every(every), burst)}
}

// refusal logs a refusal, and how many were left out before it.
func (l *logLimits) refusal(log *slog.Logger, fields ...any) {
	if fields, ok := l.refusals.pass("refusals_not_logged", fields); ok {
		log.Info("refused", fields...)
	}
}

// failure logs a failure, and how many of its kind were left out before it.
func (l *logLimits) failure(log *slog.Logger, kind flood, message string, fields ...any) {
	if fields, ok := l.of(kind).pass("failures_not_logged", fields); ok {
		log.Error(message, fields...)
	}
}

func (l *logLimits) of(kind flood) *logLimit {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.failures[kind]
	if limit == nil {
		limit = newLogLimit(failuresEvery, failureBurst)
		l.failures[kind] = limit
	}
	return limit
}

// pass reports whether one more may be logged, and adds to its fields how many were left out before it.
func (l *logLimit) pass(omitted string, fields []any) ([]any, bool) {
	if !l.allowed.Allow() {
		l.omitted.Add(1)
		return nil, false
	}
	if n := l.omitted.Swap(0); n > 0 {
		fields = append(fields, omitted, n)
	}
	return fields, true
}
