package volume

import (
	"context"
	"errors"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/tracing"
)

// observed runs one backend operation, reports it to the observer, and names it in its error.
func observed[T any](ctx context.Context, s *Service, operation, volume string,
	run func(context.Context) (T, error)) (T, error) {
	start := time.Now()
	result, err := tracing.Run(ctx, "backend "+operation, run)
	s.observe(operation, time.Since(start), err)
	return result, named(err, operation, volume)
}

// creating is observed for an operation that creates something.
func creating[T any](ctx context.Context, s *Service, operation, name string,
	run func(context.Context) (T, error)) (T, error) {
	return observed(ctx, s, operation, name, func(ctx context.Context) (T, error) {
		made, err := run(ctx)
		return made, undecided(err)
	})
}

// undecided makes a full disk Unavailable if the backend has not classified the error. Exhausted would be final for
// csi-provisioner and csi-snapshotter, and only the backend knows whether it has created something before.
func undecided(err error) error {
	if _, kinded := errors.AsType[*backends.Error](err); kinded || !backends.Is(err, backends.Exhausted) {
		return err
	}
	return backends.Errorf(backends.Unavailable, "%w", err)
}

func (s *Service) run(ctx context.Context, operation, volume string, run func(context.Context) error) error {
	_, err := observed(ctx, s, operation, volume,
		func(ctx context.Context) (struct{}, error) { return struct{}{}, run(ctx) })
	return err
}

// listed is observed for operations that return a page.
func listed[T any](ctx context.Context, s *Service, operation string,
	run func(context.Context) ([]T, string, error)) ([]T, string, error) {
	var next string
	entries, err := observed(ctx, s, operation, "", func(ctx context.Context) ([]T, error) {
		var entries []T
		var err error
		entries, next, err = run(ctx)
		return entries, err
	})
	return entries, next, err
}

// named adds the operation and the volume to an error, once, so that backends need not repeat them in every error.
func named(err error, operation, volume string) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*backends.Error](err); ok && e.Op != "" {
		return err
	}
	return &backends.Error{Kind: backends.KindOf(err), Op: operation, Volume: volume, Err: err}
}

// unlessGone drops NotFound: there is nothing to undo.
func unlessGone(err error) error {
	if backends.Is(err, backends.NotFound) {
		return nil
	}
	return err
}

func unsupported(what string) error {
	return backends.Errorf(backends.Unsupported, "this backend does not %s", what)
}
