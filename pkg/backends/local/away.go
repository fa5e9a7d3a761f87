package local

import (
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// away is a volume, a snapshot or a group that is there, or may be, and that cannot be used now.
type away struct {
	pool   string // the name of its pool
	folder string // the folder of the pool that its entry is in; empty unless the entry itself is what is wrong
	reason string // one CamelCase word
	why    error  // a sentence that says what to do about it
}

// The reasons that things are away.
const (
	poolUnavailable   = "PoolUnavailable"
	poolNotConfigured = "PoolNotConfigured"
	recordUnreadable  = "RecordUnreadable"
	recordNewer       = "RecordNewer"
	handleInTwoPlaces = "HandleInTwoPlaces"
)

// err is what a caller gets who asks for it.
func (a *away) err() error {
	return backends.Errorf(backends.Unusable, "it is in pool %q and cannot be used now: %w", a.pool, a.why)
}

// ofPool reports whether it is the pool that cannot be used, with all that is in it.
func (a *away) ofPool() bool { return a.reason == poolUnavailable || a.reason == poolNotConfigured }

// issue is how the health of what is away is told.
func (a *away) issue() []backends.HealthIssue {
	return []backends.HealthIssue{{Status: backends.Inaccessible, Reason: a.reason,
		Message: failure.OneLine(a.err()).Error()}}
}
