package ownership

import "time"

// Observer observes a walk, in one goroutine at a time. It is not called for a volume that needs no walk.
type Observer interface {
	Began()
	// Progressed gets the progress of the walk: at intervals, and once more at the end.
	Progressed(soFar Result, elapsed time.Duration)
	// Ended is called when the walk is over, with an error if it was cut short.
	Ended(elapsed time.Duration, err error)
}

// watch reports a walk to an observer.
type watch struct {
	walker   *walker
	observer Observer
	begin    time.Time
	stop     chan struct{}
	stopped  chan struct{}
}

// watch starts reporting to the observer, unless that is nil. It lasts until end.
func (w *walker) watch(observer Observer, every time.Duration) *watch {
	if observer == nil {
		return nil
	}
	if every <= 0 {
		every = time.Second
	}
	h := &watch{walker: w, observer: observer, begin: time.Now(), stop: make(chan struct{}), stopped: make(chan struct{})}
	observer.Began()
	go h.run(every)
	return h
}

func (h *watch) run(every time.Duration) {
	defer close(h.stopped)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-ticker.C:
			h.progressed()
		}
	}
}

func (h *watch) progressed() { h.observer.Progressed(h.walker.result(), time.Since(h.begin)) }

// end reports the final progress and the end of the walk.
func (h *watch) end(err error) {
	if h == nil {
		return
	}
	close(h.stop)
	<-h.stopped
	h.progressed()
	h.observer.Ended(time.Since(h.begin), err)
}
