package node

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// Expand grows the contents of a volume to fill it, after the volume itself was grown. It returns the size of the
// volume in bytes, or 0 for unknown, which CSI's answer may leave out. A volume that is not a device has nothing to
// grow. Its size is the required one, because the controller gave it that size; if none is required, it is unknown: the
// filesystem that the volume is on may be larger, and only a backend knows whether a quota limits the volume.
//
// Kinds: NotFound when the volume is not at the path, as far as is known; Invalid when it is not there as the type that
// is named; OutOfRange when an image was not grown to the required size; Unavailable when a device was not (yet), and
// when the volume does not show at the path, at its staging path, or at its device, where it is known to be; those of
// filesystem.GrowMounted.
func (s *Service) Expand(ctx context.Context, request ExpandRequest) (sizeBytes int64, err error) {
	return change(ctx, s, "expand", request.Volume, func(ctx context.Context) (int64, error) {
		at, err := s.recorded(ctx, request.Volume, request.Path)
		if err != nil {
			return 0, err
		}
		if err := at.check(ctx); err != nil {
			return 0, passing(err)
		}
		if request.Type != "" && request.Type != at.staged.Type {
			return 0, backends.Errorf(backends.Invalid,
				"it is to be expanded as access type %s, and is staged as %s: name that or none", request.Type, at.staged.Type)
		}
		return s.expand(ctx, at, request.Size)
	})
}

func (s *Service) expand(ctx context.Context, at shown, size backends.CapacityRange) (sizeBytes int64, err error) {
	source := at.staged.Source
	if source.Kind != ledger.Device {
		return size.RequiredBytes, nil
	}
	if sizeBytes, err = device.Refresh(ctx, source.DevicePath); err != nil {
		return 0, passing(err)
	}
	if err := checkGrown(source, sizeBytes, size.RequiredBytes); err != nil {
		return sizeBytes, err
	}
	if at.staged.Type == backends.Block || at.staged.ReadOnly {
		return sizeBytes, nil
	}
	if state, err := mount.Inspect(ctx, at.staged.Path); err != nil {
		return 0, backends.Errorf(backends.Unavailable, "its mount at %s does not answer: %w", at.staged.Path, err)
	} else if !shows(state, at.staged) {
		return 0, backends.Errorf(backends.Unavailable,
			"it is not mounted at its staging path %s (any more), where it is grown: stage it again", at.staged.Path)
	}
	err = filesystem.GrowMounted(ctx, at.staged.Path, source.DevicePath, source.FSType)
	if backends.Is(err, backends.NotFound) {
		err = passing(err)
	}
	return sizeBytes, err
}

// passing turns an error into a transient one: the volume does not show as recorded, because its mount was taken down
// or its device is away. The kubelet treats NotFound and Invalid as infeasible and never retries, not even after the
// volume was staged again. It treats InUse as a reason not to retry on this node.
func passing(err error) error {
	switch kindOf(err) {
	case backends.NotFound, backends.Invalid, backends.InUse:
		return backends.Errorf(backends.Unavailable, "%w; it can be grown once it is staged and published there again", err)
	default:
		return err
	}
}

// checkGrown refuses a device that is smaller than required.
func checkGrown(source ledger.Source, size, required int64) error {
	if size >= required {
		return nil
	}
	kind := backends.Unavailable
	if source.Image {
		kind = backends.OutOfRange
	}
	return backends.Errorf(kind, "%s has %d bytes and %d are required: the volume itself must be expanded first",
		source.DevicePath, size, required)
}
