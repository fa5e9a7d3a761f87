package node

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// growMounted grows a filesystem that is smaller than its device, after mounting it: the kernel needs no check of the
// whole filesystem for that, and may be interrupted.
func (st *staging) growMounted(ctx context.Context) error {
	if st.want.ReadOnly || !filesystem.NeedsGrow(st.found, st.device.SizeBytes) {
		return nil
	}
	place, path, fsType := st.recipe.place, st.device.Path, st.want.Source.FSType
	_, err := st.onDevice(ctx, "growing the mounted "+fsType+" on",
		func(ctx context.Context, _ *os.File) (filesystem.Found, error) {
			return filesystem.Found{}, refusal(fsType, filesystem.GrowMounted(ctx, place, path, fsType))
		})
	switch _, refused := errors.AsType[growthRefused](err); {
	case !refused:
		return err
	case st.begun || st.unfinished:
		return st.growUnmounted(ctx, err)
	}
	return nil // it is in use: NodeExpandVolume says why it does not grow
}

// growthRefused is the kernel's refusal to grow a mounted filesystem that can also grow unmounted.
type growthRefused struct{ error }

// Unwrap returns the kernel's error.
func (g growthRefused) Unwrap() error { return g.error }

// refusal marks an error of GrowMounted for which a fallback exists.
func refusal(fsType string, err error) error {
	kind := backends.KindOf(err)
	if err == nil || kind != backends.Denied && kind != backends.Unknown || !strings.HasPrefix(fsType, "ext") {
		return err
	}
	return growthRefused{err}
}

// growUnmounted grows an ext filesystem that the kernel does not grow while it is mounted, as without CAP_SYS_RESOURCE.
// It unmounts the filesystem for that. Nobody uses the mount yet: the volume is not staged.
func (st *staging) growUnmounted(ctx context.Context, why error) error {
	st.service.log.InfoContext(ctx, "the mounted filesystem does not grow: it is unmounted for that", "volume",
		st.request.Volume, "reason", why)
	if err := mount.Unmount(ctx, st.recipe.place); err != nil {
		return err
	}
	st.present = false
	path, fsType, base := st.device.Path, st.found.Type, st.repairBase()
	err := st.repair(ctx, "growing the "+fsType+" on", func(ctx context.Context, tools *filesystem.Tools) error {
		return tools.GrowOffline(ctx, path, fsType, base)
	})
	if err != nil {
		return err
	}
	return st.mountDevice(ctx)
}
