package ownership

import "time"

// Observer is told of a walk, by one goroutine at a time. It hears nothing of a volume that needs no walk.
type Observer interface {
	Began()
	// Progressed tells how far the walk has come: now and then, and once more when it has ended.
	Progressed(soFar Result, elapsed time.Duration)
	// Ended tells that the walk is over; with an error it was cut short.
	Ended(elapsed time.Duration, err error)
}

// watch tells an observer of a walk.
type watch struct {
	walker   *walker
	observer Observer
	begin    time.Time
	stop     chan struct{}
	stopped  chan struct{}
}

// watch begins to tell the observer, if there is one, until the watch is ended.
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

// end tells the last that there is to tell.
func (h *watch) end(err error) {
	if h == nil {
		return
	}
	close(h.stop)
	<-h.stopped
	h.progressed()
	h.observer.Ended(time.Since(h.begin), err)
}
