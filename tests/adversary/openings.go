package adversary

import "sync/atomic"

// openings knows whether a process opens the loop devices of volumes. Its number is odd while one does.
type openings struct{ changes atomic.Int64 }

func (o *openings) begin() { o.changes.Add(1) }
func (o *openings) end()   { o.changes.Add(1) }

// since returns a function that reports whether a process opened devices at any time since then.
func (o *openings) since() (opened func() bool) {
	before := o.changes.Load()
	return func() bool { return before%2 == 1 || o.changes.Load() != before }
}
