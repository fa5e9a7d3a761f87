package driver

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// refusalsEvery and refusalBurst bound how many refusals are logged: those of draining a large node, and then ten a
// second.
const (
	refusalsEvery = 100 * time.Millisecond
	refusalBurst  = 500
)

// failuresEvery and failureBurst bound how many failures of a method with one code are logged. A failure has more to
// report than a refusal, and the stack of a panic has several kilobytes, but a hundred of one kind are enough.
const (
	failuresEvery = time.Second
	failureBurst  = 100
)

// logLimits bound how many unsuccessful requests are logged: a caller that retries without a pause must not fill the
// node's disk. The metrics count all of them.
type logLimits struct {
	refusals *logLimit
	mu       sync.Mutex
	failures map[flood]*logLimit // one per method and code
}

// flood is a kind of failure that may repeat endlessly. It does not suppress the log of other kinds.
type flood struct{ method, code string }

// logLimit admits the first lines of each burst.
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

// refusal logs a refusal, and how many were omitted before it.
func (l *logLimits) refusal(log *slog.Logger, fields ...any) {
	if fields, ok := l.refusals.pass("refusals_not_logged", fields); ok {
		log.Info("refused", fields...)
	}
}

// failure logs a failure, and how many of its kind were omitted before it.
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

// pass reports whether one more line may be logged, and adds the number of omitted lines to its fields.
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
