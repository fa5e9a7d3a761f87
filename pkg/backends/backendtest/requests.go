package backendtest

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// endedRequest makes calls whose context has already ended.
func endedRequest(w *world, ts things) {
	before, _ := w.listed(ts)
	kept := w.make(ts, "kept")
	ended, cancel := context.WithCancel(w.ctx())
	cancel()
	w.promptly("creating", func() {
		_, err := ts.create(ended, "one")
		w.fails("creating with a request that has ended", err, backends.Busy, backends.Unavailable)
	})
	w.promptly("deleting", func() {
		err := ts.delete(ended, kept.handle)
		w.fails("deleting with a request that has ended", err, backends.Busy, backends.Unavailable)
	})
	w.promptly("finding", func() {
		if _, err := ts.find(ended, "kept"); err != nil {
			w.fails("finding with a request that has ended", err, backends.Busy, backends.Unavailable)
		}
	})
	w.promptly("getting", func() {
		if _, err := ts.get(ended, kept.handle); err != nil {
			w.fails("getting with a request that has ended", err, backends.Busy, backends.Unavailable)
		}
	})
	_, err := ts.find(w.ctx(), "one")
	w.fails("finding what was not created", err, backends.NotFound)
	w.same(ts, "kept", kept)
	w.onlyNew(ts, before, kept.handle)
}

// endingRequest ends the context a little later in every round. After a failure the thing may exist or not, after a
// success it must exist. If it exists, it is complete.
func endingRequest(w *world, ts things) {
	before, _ := w.listed(ts)
	for delay := 10 * time.Microsecond; delay < 200*time.Millisecond; delay *= 2 {
		ctx, cancel := context.WithTimeout(w.ctx(), delay)
		var t thing
		var err error
		w.promptly("creating", func() { t, err = ts.create(ctx, "one") })
		cancel()
		if err == nil {
			w.same(ts, "one", t)
		} else {
			w.fails("creating with a request that ends", err, backends.Busy, backends.Unavailable)
		}
		w.allOrNothing(ts, "one")
		w.onlyNew(ts, before)
	}
}
