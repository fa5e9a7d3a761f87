package local

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Close ends the work in the background and lets another process have the data directory and the pools. What hangs in
// the kernel ends with the process. Until then it may write, and so the locks are kept while something goes on, to be
// given back by a further Close or with the process. Kinds: Busy, naming what has not ended by the end of the context.
func (e *engine) Close(ctx context.Context) error {
	e.stop()
	half, cancel := halfway(ctx) // What the works leave is trash, which the pools' janitors have the rest for.
	defer cancel()
	ends := slices.Concat(e.making.ends(), e.disks.endsOfMeasuring(), []func(context.Context) error{e.work.Wait})
	_ = endAll(half, ends) // They are asked again.
	pools := e.served()
	for _, p := range pools {
		ends = append(ends, p.janitor.close)
	}
	if err := endAll(ctx, ends); err != nil {
		return err
	}
	var errs []error
	for _, p := range pools {
		errs = append(errs, p.leave())
	}
	return errors.Join(errors.Join(errs...), e.lock.Close())
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
