package node

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// bindDevice shows the device's node as a file in the staging directory. Publish binds from there.
func (st *staging) bindDevice(ctx context.Context) error {
	if st.present {
		return nil
	}
	return st.protected(ctx, st.bindNode)
}

// bindNode mounts the device's node on a file at the place.
func (st *staging) bindNode() error {
	target, err := safepath.OpenTarget(st.recipe.place)
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }() // opened for looking only
	if _, err := target.MakeFile(0o600); err != nil {
		return err
	}
	root, err := mount.Bind(st.device.Path, target, st.want.ReadOnly, st.proveNode)
	if err == nil {
		st.arrived(root)
	}
	return err
}

// proveNode refuses a node that does not lead to the proven device any more. Kinds: Unavailable.
func (st *staging) proveNode(found mount.State) error {
	if found.Rdev == st.device.Number() {
		return nil
	}
	return backends.Errorf(backends.Unavailable, "%s is not the device that was proven: it leads to %d:%d, expected %d:%d",
		st.device.Path, unix.Major(found.Rdev), unix.Minor(found.Rdev), st.device.Major, st.device.Minor)
}

// bindDirectory bind-mounts the directory at the staging path.
func (st *staging) bindDirectory(context.Context) error {
	if st.present {
		return nil
	}
	target, err := safepath.OpenTarget(st.recipe.place)
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }() // opened for looking only
	root, err := mount.Bind(st.want.Source.Path, target, st.want.ReadOnly, st.proveDirectory,
		st.request.MountOptions...)
	if err == nil {
		st.arrived(root)
	}
	return err
}

// proveDirectory refuses another directory than the one that was found, as when the filesystem that it is on was
// unmounted since. Kinds: Unavailable.
func (st *staging) proveDirectory(found mount.State) error {
	if rootOf(found) == st.want.Root {
		return nil
	}
	return backends.Errorf(backends.Unavailable,
		"the volume's directory %s has become another while it was being staged: is the disk that it is on still mounted?",
		st.want.Source.Path)
}

// mountExport mounts the export at the staging path.
func (st *staging) mountExport(ctx context.Context) error {
	if st.present {
		return nil
	}
	source, ok := st.source.(backends.Export)
	if !ok {
		return backends.Errorf(backends.Unknown, "the volume is not an export: %T", st.source)
	}
	options := append(append([]string{}, source.Options...), st.request.MountOptions...)
	err := st.mount(ctx, mount.Filesystem{
		Type: source.FSType, Source: source.Source, Options: options, ReadOnly: st.want.ReadOnly, Export: true,
		Prove: source.Prove,
	})
	if backends.Is(err, backends.NotFound) {
		// The backend knows the volume: the server does not export it now.
		return backends.Errorf(backends.Unavailable, "%w", err)
	}
	return err
}
