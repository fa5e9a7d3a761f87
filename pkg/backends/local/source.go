package local

import (
	"context"
	"errors"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Source returns the location of the volume's directory or image, and notes that the volume is in use from now on.
// Kinds: NotFound; Unsupported for a directory that is wanted as a device, and a raw volume that is not; Unavailable
// when the data is not there; Busy while it is being copied.
func (e *engine) Source(ctx context.Context, a backends.Attachment) (result backends.Source, err error) {
	defer annotate(&err, "find the source of volume", a.Handle)
	v, err := e.stock.volumes.get(a.Handle)
	if err != nil {
		return nil, err
	}
	if err := v.pool.storage.access().OfRaw(v.record.Load().Raw).CheckStaged(a.Type); err != nil {
		return nil, err
	}
	release, err := v.use(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	info, err := os.Lstat(v.data())
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "its data cannot be reached: %w", v.pool.explain(err))
	}
	source, err := v.pool.storage.source(v.data(), info, v.record.Load())
	if err != nil {
		return nil, err
	}
	if err := errors.Join(e.forgetReleased(v), e.noteInUse(v)); err != nil {
		return nil, v.pool.explain(err)
	}
	v.inUse.Store(true)
	return source, nil
}

// use is held while the volume comes into use, so that nothing copies it then. If the volume is already in use, nothing
// changes.
func (v *volume) use(ctx context.Context) (release func(), err error) {
	release, err = v.share(ctx)
	if err != nil || v.inUse.Load() {
		return release, err
	}
	release()
	return v.own(ctx)
}

// leave is held while the volume goes out of use. It need not wait for copies that show no single instant.
func (v *volume) leave(ctx context.Context) (release func(), err error) {
	if !v.pool.storage.instant {
		return v.share(ctx)
	}
	return v.own(ctx)
}

// leaveNow is leave for callers that come again. It does not wait.
func (v *volume) leaveNow() (release func(), ok bool) {
	if !v.pool.storage.instant {
		return v.shareNow()
	}
	return v.ownNow()
}
