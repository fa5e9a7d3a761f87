package recycler

import (
	"sync"
	"time"
)

// waits holds since when volumes have waited for the end of their use, by the process's clock.
type waits struct {
	mu    sync.Mutex
	since map[string]waitOf // by volume
}

type waitOf struct {
	driver string
	from   time.Time
}

// note records whether a volume of a driver waits for the end of its use.
func (w *waits) note(volume, driver string, isWaiting bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.since[volume]; isWaiting && !known {
		w.since[volume] = waitOf{driver, time.Now()}
	} else if !isWaiting {
		delete(w.since, volume)
	}
}

// longest returns how long the volume of a driver that has waited longest has waited, in seconds.
func (w *waits) longest(driver string) (seconds float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.since {
		if one.driver == driver {
			seconds = max(seconds, time.Since(one.from).Seconds())
		}
	}
	return seconds
}
