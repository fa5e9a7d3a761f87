package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// proveDevice finds the device, proves that it is the right one and holds it open, so that the later phases work on the
// device that was proven.
func (st *staging) proveDevice(ctx context.Context) error {
	source, ok := st.source.(backends.Device)
	if !ok {
		return backends.Errorf(backends.Unknown, "the volume is not a device: %T", st.source)
	}
	opened, err := st.openDevice(ctx, source)
	if err != nil {
		return err
	}
	st.device = opened
	st.want.Source.DevicePath, st.want.Source.Major, st.want.Source.Minor = opened.Path, opened.Major, opened.Minor
	if st.want.Source.Sequence, err = device.Sequence(opened.File); err != nil {
		return err
	}
	switch {
	case source.ReadAheadKiB != 0:
		return device.SetReadAhead(opened, source.ReadAheadKiB)
	case opened.Loop:
		return device.ResetReadAhead(opened)
	}
	return nil
}

// recover repairs what an interrupted tool of an earlier call left. For read-only staging, which writes nothing, it
// refuses that: a reader would find files missing or damaged that only the tool's end brings back.
func (st *staging) recover(ctx context.Context) error {
	path, base := st.device.Path, st.repairBase()
	switch {
	case st.present:
		return nil
	case st.want.ReadOnly:
		return st.refuseCutShort(ctx, base)
	}
	if interrupted, err := filesystem.Interrupted(base); err != nil || !interrupted {
		return err
	}
	return st.repair(ctx, "repairing what was cut short on", func(ctx context.Context, tools *filesystem.Tools) error {
		return tools.Recover(ctx, path, base)
	})
}

// refuseCutShort refuses a filesystem on which a tool of an earlier call was interrupted. Kinds: Invalid; Unavailable
// when that cannot be told.
func (st *staging) refuseCutShort(ctx context.Context, base string) error {
	cut, err := filesystem.CutShort(ctx, st.device.File, base)
	if err != nil || !cut {
		return err
	}
	return backends.Errorf(backends.Invalid,
		"the repair or the growth of the filesystem on %s was cut short, and for reading only it is not completed: "+
			"stage the volume once for writing, on this node, which completes it", st.device.Path)
}

// repair is onDevice for work that finds its device by its path.
func (st *staging) repair(ctx context.Context, name string, do func(context.Context, *filesystem.Tools) error) error {
	tools := st.service.tools
	_, err := st.onDevice(ctx, name, func(ctx context.Context, _ *os.File) (filesystem.Found, error) {
		return filesystem.Found{}, do(ctx, tools)
	})
	return err
}

// checkFilesystem repairs what can be repaired without loss.
func (st *staging) checkFilesystem(ctx context.Context) error {
	if st.present || st.formatDue || st.want.ReadOnly || !st.found.Dirty {
		return nil
	}
	path, fsType, base := st.device.Path, st.found.Type, st.repairBase()
	return st.repair(ctx, "checking the "+fsType+" on", func(ctx context.Context, tools *filesystem.Tools) error {
		return tools.Check(ctx, path, fsType, base)
	})
}

// repairBase returns the path at which the intent to repair or grow this volume's filesystem is recorded.
func (st *staging) repairBase() string {
	hash := sha256.Sum256([]byte(st.request.Volume))
	return filepath.Join(st.service.repairDir, hex.EncodeToString(hash[:16]))
}

// mountDevice mounts the filesystem.
func (st *staging) mountDevice(ctx context.Context) error {
	if st.present {
		return nil
	}
	fs := mount.Filesystem{
		Type: st.want.Source.FSType, Source: st.device.Path, ReadOnly: st.want.ReadOnly,
		Options: st.mountOptions(), Needs: st.neededOptions(), Dev: st.device.Number(),
	}
	st.tellUnreplayed(ctx)
	return st.protected(ctx, func() error { return st.mount(ctx, fs) })
}

// mount mounts a filesystem at the staging path.
func (st *staging) mount(ctx context.Context, fs mount.Filesystem) error {
	target, err := safepath.OpenTarget(st.recipe.place)
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }() // opened for looking only
	root, err := mount.Mount(ctx, fs, target)
	if err == nil {
		st.arrived(root)
	}
	return err
}

// arrived notes that the volume is at its place now, with this root.
func (st *staging) arrived(root mount.State) {
	st.present = true
	st.noteRoot(root)
}
