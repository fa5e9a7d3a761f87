package node

import (
	"context"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
)

// format creates a filesystem on a blank device, or resumes an earlier call that was interrupted, on this node or
// another.
func (st *staging) format(ctx context.Context) (err error) {
	if st.present || !st.formatDue {
		return nil
	}
	fsType := st.want.Source.FSType
	st.service.log.InfoContext(ctx, "formatting", "volume", st.request.Volume, "device", st.device.Path, "filesystem",
		fsType, "resume", st.halfMade(fsType))
	tools, request := st.service.tools, filesystem.Request{
		Path: st.device.Path, FSType: fsType, Volume: st.request.Volume, Geometry: st.request.Settings.Geometry,
		Whole: st.formatWhole(),
	}
	source := st.want.Source
	st.found, err = st.onDevice(ctx, "making the "+fsType+" on",
		func(ctx context.Context, held *os.File) (filesystem.Found, error) {
			request.Held = held
			found, err := tools.Format(ctx, request)
			if err != nil && !found.Blank() { // seen by the read that the call did not wait for
				err = backends.Errorf(backends.Invalid, "%w%s", err, wayOut(found, source))
			}
			return found, err
		})
	return err
}

// formatWhole reports whether every byte of the device is read before it is formatted. That happens in the background
// and takes as long as necessary. Of an image, only what the file holds is read, or all of it if the file cannot say.
func (st *staging) formatWhole() bool { return st.want.Source.Image || !st.request.TrustSamples }

// halfMade reports whether the device is marked as being formatted in this way, for this volume.
func (st *staging) halfMade(fsType string) bool {
	return st.found.Mark == filesystem.Mark{Volume: st.request.Volume, FSType: fsType}
}

// presentType returns the filesystem that a device has or, if it is being formatted, will have.
func (st *staging) presentType() string {
	switch {
	case st.found.Blank():
		return filesystem.Types()[0]
	case st.found.Mark.Volume == st.request.Volume:
		return st.found.Mark.FSType
	}
	return st.found.Type
}
