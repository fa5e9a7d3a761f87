package batch

import (
	"context"
	"fmt"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// Result is the outcome of one item.
type Result[O any] struct {
	Value O
	Err   error
}

// Func makes one request for several distinct items, and returns one result per item in the same order. An error
// concerns the request as a whole; the results are then ignored.
type Func[I comparable, O any] func(ctx context.Context, items []I) ([]Result[O], error)

// Options configure requests.
type Options struct {
	// Max is the maximum number of items in one request; 0 for any number.
	Max int
	// Timeout bounds one request; 0 for no bound but the context's.
	Timeout time.Duration
	// Slow is how long a Batcher delays the next request while one is under way; 0 to wait until it ends. Without it, one
	// hanging connection would stop all callers.
	Slow time.Duration
	// Blames reports whether one item may have caused a request to fail as a whole, so that trying parts of it makes
	// sense. Nil means BlamesItem.
	Blames func(error) bool
	// Named reports whether such a failure names an item in its printed form. One request is then made for the named items
	// and one for the rest, instead of one for each half. Named decides nothing else. Nil names none.
	Named func(err error, item string) bool
}

// BlamesItem reports whether the Kind of a failure concerns the requested items. Throttling and missing permissions
// concern the cloud or the account: halves would fail alike, and two requests instead of one would make throttling
// worse.
func BlamesItem(err error) bool {
	switch failure.KindOf(err) {
	case failure.Invalid, failure.NotFound, failure.Exists, failure.OutOfRange, failure.InUse:
		return true
	default:
		return false
	}
}

// Each makes as many requests as the items need, one after another, and returns the items' results in order.
func Each[I comparable, O any](ctx context.Context, items []I, options Options, call Func[I, O]) []Result[O] {
	results := make([]Result[O], 0, len(items))
	for len(items) > 0 {
		n := len(items)
		if options.Max > 0 {
			n = min(n, options.Max)
		}
		results = append(results, whole(ctx, items[:n], options, call)...)
		items = items[n:]
	}
	return results
}

// whole makes one request. If it fails because of an item, whole makes one request for each of two parts.
func whole[I comparable, O any](ctx context.Context, items []I, options Options, call Func[I, O]) []Result[O] {
	results, err := once(ctx, items, options, call)
	if err == nil {
		return results
	}
	if len(items) > 1 && options.blames(err) && ctx.Err() == nil {
		return parts(ctx, items, options, call, err)
	}
	results = make([]Result[O], len(items))
	for i := range results {
		results[i].Err = err
	}
	return results
}

// parts makes one request for the items that a failure names and one for the rest. If the failure does not tell the
// items apart, it makes one for each half.
func parts[I comparable, O any](ctx context.Context, items []I, options Options, call Func[I, O],
	because error) []Result[O] {
	var suspects, rest []I
	for _, item := range items {
		if options.Named != nil && options.Named(because, fmt.Sprint(item)) {
			suspects = append(suspects, item)
		} else {
			rest = append(rest, item)
		}
	}
	if len(suspects) == 0 || len(rest) == 0 {
		suspects, rest = items[:len(items)/2], items[len(items)/2:]
	}
	found := make(map[I]Result[O], len(items))
	for _, part := range [][]I{suspects, rest} {
		for i, result := range whole(ctx, part, options, call) {
			found[part[i]] = result
		}
	}
	results := make([]Result[O], len(items))
	for i, item := range items {
		results[i] = found[item]
	}
	return results
}

func (o Options) blames(err error) bool {
	if o.Blames == nil {
		return BlamesItem(err)
	}
	return o.Blames(err)
}

func once[I comparable, O any](ctx context.Context, items []I, options Options, call Func[I, O]) ([]Result[O], error) {
	if options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, options.Timeout)
		defer cancel()
	}
	results, err := call(ctx, items)
	if err == nil && len(results) != len(items) {
		// Without this check, callers would get the answers of others.
		return nil, failure.Errorf(failure.Unavailable, "a request for %d items was answered with %d results", len(items),
			len(results))
	}
	return results, err
}
