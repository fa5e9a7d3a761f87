package local

import (
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// away describes a volume, a snapshot or a group that exists, or may exist, but cannot be used now.
type away struct {
	pool   string // the name of its pool
	folder string // the folder of the pool that has its entry; empty unless the entry itself is the problem
	reason string // one CamelCase word
	why    error  // a sentence that says what to do about it
}

// The reasons for which items are away.
const (
	poolUnavailable   = "PoolUnavailable"
	poolNotConfigured = "PoolNotConfigured"
	recordUnreadable  = "RecordUnreadable"
	recordNewer       = "RecordNewer"
	handleInTwoPlaces = "HandleInTwoPlaces"
)

// err is the error for a caller that asks for the item.
func (a *away) err() error {
	return backends.Errorf(backends.Unusable, "it is in pool %q and cannot be used now: %w", a.pool, a.why)
}

// ofPool reports whether the whole pool is unusable, with everything in it.
func (a *away) ofPool() bool { return a.reason == poolUnavailable || a.reason == poolNotConfigured }

// issue returns the health issue of an item that is away.
func (a *away) issue() []backends.HealthIssue {
	return []backends.HealthIssue{{Status: backends.Inaccessible, Reason: a.reason,
		Message: failure.OneLine(a.err()).Error()}}
}
