package local

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Close ends the work in the background and lets another process have the data directory and the pools. Work that hangs
// in the kernel ends only with the process. Because such work may still write, all locks are kept until a further Close
// succeeds or the process ends. Kinds: Busy, naming what has not ended by the end of the context.
func (e *engine) Close(ctx context.Context) error {
	e.stop()
	half, cancel := halfway(ctx) // The second half is for the janitors: ended works leave trash.
	defer cancel()
	_ = endAll(half, e.works()) // The loop asks them again.
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

// works returns the functions that end the work on volumes, disks and pools.
func (e *engine) works() []func(context.Context) error {
	return slices.Concat(e.making.ends(), e.disks.endsOfMeasuring(), []func(context.Context) error{e.work.Wait})
}

// tidying returns the functions that end the removal of trash.
func (e *engine) tidying() (ends []func(context.Context) error) {
	for _, p := range e.served() {
		ends = append(ends, p.janitor.close)
	}
	return ends
}

// endAll runs all functions concurrently, so that one that hangs takes no time from the others.
func endAll(ctx context.Context, ends []func(context.Context) error) error {
	errs := make([]error, len(ends))
	var group sync.WaitGroup
	for i, end := range ends {
		group.Go(func() { errs[i] = end(ctx) })
	}
	group.Wait()
	return errors.Join(errs...)
}

// halfway returns a context that ends after half of the time that is left until ctx ends.
func halfway(ctx context.Context) (half context.Context, cancel context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}
