package local

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Close ends the work in the background and lets another process have the data directory and the pools. What hangs in
// the kernel ends with the process. Until then it may write, and so all locks are kept while some of it goes on, to be
// given back by a further Close or with the process. Kinds: Busy, naming what has not ended by the end of the context.
func (e *engine) Close(ctx context.Context) error {
	e.stop()
	half, cancel := halfway(ctx) // What the works leave is trash, which the pools' janitors have the rest for.
	defer cancel()
	_ = endAll(half, e.works()) // They are asked again.
	for range 2 {               // A pool that was being opened may be served by now.
		if err := endAll(ctx, append(e.works(), e.tidying()...)); err != nil {
			return err
		}
	}
	var errs []error
	for _, p := range e.served() {
		errs = append(errs, p.leave())
	}
	return errors.Join(errors.Join(errs...), e.lock.Close())
}

// works are what ends the work on volumes, disks and pools.
func (e *engine) works() []func(context.Context) error {
	return slices.Concat(e.making.ends(), e.disks.endsOfMeasuring(), []func(context.Context) error{e.work.Wait})
}

// tidying is what ends the removal of trash.
func (e *engine) tidying() (ends []func(context.Context) error) {
	for _, p := range e.served() {
		ends = append(ends, p.janitor.close)
	}
	return ends
}

// endAll ends everything side by side: what hangs takes no time from the rest.
func endAll(ctx context.Context, ends []func(context.Context) error) error {
	errs := make([]error, len(ends))
	var group sync.WaitGroup
	for i, end := range ends {
		group.Go(func() { errs[i] = end(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// halfway is a context that ends in the middle of the time that is left until another does.
func halfway(ctx context.Context) (half context.Context, cancel context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}
