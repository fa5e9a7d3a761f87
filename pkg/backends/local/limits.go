package local

import (
	"cmp"
	"time"
)

// Limits are how long the backend waits for operations that may hang or take a while. A zero field means its default.
type Limits struct {
	Open    time.Duration // for pools to open at the start; slower pools go on opening in the background
	Look    time.Duration // for one check of a pool
	Reclaim time.Duration // for the space of items that are being removed, in a request
}

func (l Limits) orDefault() Limits {
	return Limits{
		Open:    cmp.Or(l.Open, 5*time.Second),
		Look:    cmp.Or(l.Look, 5*time.Second),
		Reclaim: cmp.Or(l.Reclaim, 2*time.Second),
	}
}
