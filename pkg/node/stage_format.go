package node

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
)

// format makes a filesystem on a blank device, or makes the one again that a call before this one was
// making when it was cut short. The intent is on disk before the first byte is written.
func (st *staging) format(ctx context.Context) error {
	if st.present || !st.formatDue {
		return nil
	}
	intent, bound := st.intent(st.want.Source.FSType)
	resume := bound && st.service.intents.Stands(intent)
	if bound && !resume {
		if err := st.service.intents.Record(intent); err != nil {
			return err
		}
	}
	st.service.log.InfoContext(ctx, "formatting", "volume", st.request.Volume, "device", st.device.Path, "filesystem", intent.FSType, "resume", resume)
	err := filesystem.Format(ctx, filesystem.Request{Path: st.device.Path, Held: st.device.File, FSType: intent.FSType, Resume: resume})
	if err != nil {
		return err
	}
	st.found = filesystem.Found{Type: intent.FSType, SizeBytes: st.device.SizeBytes}
	return nil
}

// halfMade tells whether a call before this one was making the filesystem on this very device.
func (st *staging) halfMade(fsType string) bool {
	intent, bound := st.intent(fsType)
	return bound && st.service.intents.Stands(intent)
}

// intent is what is recorded before the device is formatted. It is bound to the device by what stays
// with it and with no other; bound is false where there is no such thing.
func (st *staging) intent(fsType string) (intent ledger.Intent, bound bool) {
	source, _ := st.source.(backends.Device)
	intent = ledger.Intent{Volume: st.request.Volume, FSType: fsType}
	switch {
	case source.Image:
		var stat unix.Stat_t
		if unix.Stat(source.Path, &stat) != nil {
			return intent, false
		}
		intent.Image, intent.Identity = source.Path, fmt.Sprintf("inode %d", stat.Ino)
	case source.Identity.Serial != "":
		intent.Identity = "serial " + source.Identity.Serial
	default:
		intent.Identity = fmt.Sprintf("device %d:%d in boot %s", st.device.Major, st.device.Minor, st.service.boot)
	}
	return intent, true
}
