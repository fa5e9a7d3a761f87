package node

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/node/ownership"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/secret"
	"github.com/stowage-csi/stowage/pkg/tracing"
)

// staging is the state of one call of Stage during its phases.
type staging struct {
	service *Service
	request StageRequest
	record  ledger.Record // as of the start of the call
	source  backends.Source
	recipe  recipe
	want    ledger.Staging // what to record; the phases fill it in
	// present is set when the volume is at its place, from before or by this call.
	present bool
	// taken is set when the backend notes the volume as in use because of this call.
	taken bool
	// begun is set when this call must take the volume down again if it fails.
	begun bool
	// unfinished is set when an earlier call began the staging and did not finish it, and the volume is not published.
	unfinished bool
	device     *device.Device   // proven and held open; nil before
	found      filesystem.Found // what is on it
	// formatDue is set when the device is blank, or when an interrupted call was formatting it.
	formatDue bool
}

// check validates the request alone.
func (st *staging) check(context.Context) error {
	r := &st.request
	path, err := safepath.Absolute(r.StagingPath)
	if err != nil {
		return err
	}
	path = asRecorded(st.record, path)
	r.StagingPath = path
	if _, err := safepath.Absolute(devicePlace(path)); err != nil { // Unstage looks there, whatever was staged.
		return backends.Errorf(backends.Invalid, "the staging path leaves no room for a device in it: %w", err)
	}
	if err := mountoptions.Check(r.MountOptions); err != nil {
		return err
	}
	if named, set := r.Use.FSType, r.Settings.FSType; named != "" && set != "" && named != set {
		return backends.Errorf(backends.Invalid,
			"the volume capability asks for filesystem %q and the class for %q: name one, or the same twice",
			secret.Option(named), secret.Option(set))
	}
	st.want = ledger.Staging{Path: path, Type: r.Use.Type, Mode: r.Use.Mode,
		ReadOnly: readOnly(r.Use.Mode, r.MountOptions)}
	st.want.Labels = mount.SecurityLabels(r.MountOptions)
	st.want.TrimInterval = time.Duration(r.Settings.FSTrimInterval)
	if r.Use.Type == backends.Mount && st.service.ownGroups && r.MountGroup != "" {
		st.want.Group = r.MountGroup
		_, err = ownership.ParseGID(r.MountGroup)
	}
	return err
}

// find asks the backend for the volume's source.
func (st *staging) find(ctx context.Context) (err error) {
	r := st.request
	release := st.service.features.Release
	unused := release != nil && !release.Used(ctx, r.Volume)
	st.source, err = tracing.Run(ctx, "backend source", func(ctx context.Context) (backends.Source, error) {
		return st.service.backend.Source(ctx, backends.Attachment{Handle: r.Volume, Type: r.Use.Type,
			Attributes: r.Attributes, MountOptions: r.MountOptions})
	})
	if err != nil {
		return err
	}
	st.taken = unused
	if st.want.Source, err = recordedSource(st.source); err != nil {
		return err
	}
	if st.recipe, err = recipeFor(st.source, r); err != nil {
		return err
	}
	if err := st.checkMountable(); err != nil || st.want.Source.Kind != ledger.Directory {
		return err
	}
	return st.findDirectory(ctx)
}

// checkMountable refuses a way in which the volume cannot be mounted, before anything is created for it. The mount
// options of a device are checked by probe, once the filesystem is known.
func (st *staging) checkMountable() error {
	asked, options := st.askedFSType(), st.request.MountOptions
	switch st.want.Source.Kind {
	case ledger.Directory:
		return mountoptions.Directory{}.Check(asked, options)
	case ledger.Export:
		return checkExport(asked, st.want.Source.FSType)
	case ledger.Device:
		if asked != "" && st.request.Use.Type == backends.Mount {
			return mountoptions.CheckFilesystem(asked)
		}
	}
	return nil
}

// checkExport refuses a filesystem type other than the export's. A type such as nfs4 also goes by its family name, nfs.
func checkExport(asked, fsType string) error {
	if asked == "" || asked == fsType || asked == strings.TrimRight(fsType, "0123456789") {
		return nil
	}
	return backends.Errorf(backends.Invalid,
		"filesystem %q is asked for, but the volume is an export of the type %s: name that or none",
		secret.Option(asked), fsType)
}

// findDirectory inspects the directory that the backend names. Its root is known before it is mounted.
func (st *staging) findDirectory(ctx context.Context) error {
	state, err := mount.Inspect(ctx, st.want.Source.Path)
	switch {
	case err != nil:
		return err
	case !state.Exists || !state.Dir:
		return backends.Errorf(backends.Unavailable, "the volume's directory %s is not there", st.want.Source.Path)
	}
	st.noteRoot(state)
	return nil
}

// askedFSType returns the filesystem that was asked for; empty when any will do.
func (st *staging) askedFSType() string {
	if st.request.Use.FSType != "" {
		return st.request.Use.FSType
	}
	return st.request.Settings.FSType
}

// recordedSource returns the source as the ledger records it.
func recordedSource(source backends.Source) (ledger.Source, error) {
	switch source := source.(type) {
	case backends.Device:
		return ledger.Source{Kind: ledger.Device, Path: source.Path, Image: source.Image}, nil
	case backends.Directory:
		return ledger.Source{Kind: ledger.Directory, Path: source.Path}, nil
	case backends.Export:
		return ledger.Source{Kind: ledger.Export, Path: source.Source, FSType: source.FSType}, nil
	}
	return ledger.Source{}, backends.Errorf(backends.Unsupported,
		"the backend describes the volume as %T: use a device, a directory or an export", source)
}

// readOnly reports whether a volume is to be used read-only. The last of the options ro and rw counts (mount(8)), but
// no option makes a reader-only mode writable.
func readOnly(mode backends.AccessMode, options []string) bool {
	if mode == backends.SingleNodeReaderOnly || mode == backends.MultiNodeReaderOnly {
		return true
	}
	return slices.Index(options, "ro") >= 0 && lastIndex(options, "ro") > lastIndex(options, "rw")
}

func lastIndex(list []string, value string) int {
	for i, v := range slices.Backward(list) {
		if v == value {
			return i
		}
	}
	return -1
}

// closeDevice closes the device. A loop device for a filesystem lasts as long as its mount; without one it ends here.
func (st *staging) closeDevice() {
	if st.device == nil {
		return
	}
	_ = st.device.Close() // the code that wrote to it has synced it
	st.device = nil
}
