package background

import "context"

// Join waits for the work that is under way for the key, if there is one, whatever it is, and takes its outcome; with
// none the value is the zero value. Unlike Do it begins nothing. Kinds: Busy when the work goes on; else the work's
// own.
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
