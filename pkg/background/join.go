package background

import "context"

// Join waits for any work that is under way for the key, and takes its outcome or a kept one. If there is neither, it
// returns the zero value. Unlike Do it begins no work. Kinds: Busy when the work goes on; else the work's own.
func (w *Works[T]) Join(ctx context.Context, key string) (value T, err error) {
	r := w.find(key)
	if r == nil {
		return value, nil
	}
	if err := r.await(ctx); err != nil {
		return value, err
	}
	return w.take(r)
}
