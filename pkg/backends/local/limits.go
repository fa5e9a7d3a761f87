package local

import (
	"cmp"
	"time"
)

// Limits are how long the backend waits for what may not answer, or takes a while. What is zero is as by default.
type Limits struct {
	Open    time.Duration // for pools to be opened at the start; what takes longer, or hangs, goes on in the background
	Look    time.Duration // for one look at a pool
	Reclaim time.Duration // for the space of what is being removed, in a request
}

func (l Limits) orDefault() Limits {
	return Limits{
		Open:    cmp.Or(l.Open, 5*time.Second),
		Look:    cmp.Or(l.Look, 5*time.Second),
		Reclaim: cmp.Or(l.Reclaim, 2*time.Second),
	}
}
