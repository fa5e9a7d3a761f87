package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
)

// probe determines what is on the device, and which filesystem the volume has or will have.
func (st *staging) probe(ctx context.Context) (err error) {
	if err := st.recover(ctx); err != nil {
		return err
	}
	if st.found, err = filesystem.Probe(ctx, st.device.File, st.device.SizeBytes); err != nil {
		return err
	}
	asked := st.askedFSType()
	if asked == "" {
		asked = st.presentType()
	}
	st.want.Source.FSType = asked
	st.formatDue = st.found.Blank() || st.halfMade(asked)
	if err := st.checkFound(); err != nil {
		return err
	}
	if !st.present { // An existing mount was allowed when it was made.
		if err := mountoptions.CheckFor(asked, st.request.MountOptions); err != nil {
			return err
		}
	}
	return st.checkLog(ctx)
}

// samplesDo reports whether the device may be formatted if it is blank: because of what was read of it, or because all
// of it is read first (formatWhole). A volume that this driver created is as it came from the storage, and samples
// guard against a mistake there. A hand-written PersistentVolume can name any disk.
func (st *staging) samplesDo() bool {
	return st.request.TrustSamples || !st.found.Sampled || st.found.Dense || st.want.Source.Image ||
		st.device.SizeBytes <= filesystem.WholeLimit
}

// checkFound refuses the contents of the device if they are not what was asked for.
func (st *staging) checkFound() error {
	asked, path := st.want.Source.FSType, st.device.Path
	known := slices.Contains(filesystem.Types(), asked)
	switch {
	case st.formatDue && st.want.ReadOnly:
		return backends.Errorf(backends.Invalid,
			"%s holds no filesystem yet, and none is made for reading only: stage it once in a mode that writes", path)
	case !known && asked == st.found.Type:
		return backends.Errorf(backends.Invalid,
			"%s holds %s: it can be neither mounted nor formatted; the filesystems are %s%s", path, st.found,
			strings.Join(filesystem.Types(), ", "), st.wayOut())
	case !known:
		return backends.Errorf(backends.Invalid, "filesystem %q is not supported: use %s", asked,
			strings.Join(filesystem.Types(), ", "))
	case st.formatDue && !st.samplesDo():
		return backends.Errorf(backends.Invalid,
			"samples of %s, which has %d bytes, are blank, but it is not formatted as %s: this driver did not make the "+
				"volume, and did not read every byte of it; "+
				"make the filesystem yourself (mkfs.%s), or give the PersistentVolume the volume attribute %s: \"true\"", path,
			st.device.SizeBytes, asked, asked, AllowFormat)
	case !st.formatDue && st.found.Incomplete:
		return backends.Errorf(backends.Invalid,
			"%s holds %s, whose making was cut short and was not ours: it can be neither mounted nor formatted; "+
				"if nothing on it is needed, wipe it (wipefs -a)", path, st.found)
	case !st.formatDue && st.found.Type != asked:
		return backends.Errorf(backends.Invalid,
			"%s holds %s and %s is asked for: it is not formatted, because only a blank device is%s", path, st.found, asked,
			st.wayOut())
	case !st.formatDue && !st.present && st.found.Devices > 1: // An existing mount was allowed when it was made.
		return backends.Errorf(backends.Invalid,
			"%s holds a part of a filesystem on %d devices, and the kernel would also write to the others, which are no part "+
				"of this volume: use it as a raw device, or move its data to a filesystem on one device", path, st.found.Devices)
	}
	return nil
}

// checkLog refuses read-only staging of a filesystem whose log has to be replayed. Read-only staging does not replay
// it, so the data that was synced last is missing, and an xfs may even look empty. The superblock tells for ext4 and
// btrfs; for xfs the log is read.
func (st *staging) checkLog(ctx context.Context) (err error) {
	if st.present || !st.want.ReadOnly {
		return nil
	}
	if st.found.Type == "xfs" {
		if st.found.Unreplayed, err = filesystem.UnreplayedXFS(ctx, st.device.File, st.device.SizeBytes); err != nil {
			return err
		}
	}
	ways := asItStands(st.found.Type)
	asked := slices.ContainsFunc(st.request.MountOptions,
		func(option string) bool { return slices.Contains(ways, option) })
	if !st.found.Unreplayed || asked || len(ways) == 0 {
		return nil
	}
	return backends.Errorf(backends.Invalid,
		"the %s on %s was not unmounted cleanly, and for reading only its log is not replayed, without which files may be "+
			"stale, or missing, all of them even: "+
			"stage the volume once for writing, on one node, which replays the log, or give it the mount option %s to read it "+
			"as it stands", st.found.Type, st.device.Path, ways[0])
}

// asItStands returns the mount options each of which asks for a filesystem without the contents of its log.
func asItStands(fsType string) []string {
	switch fsType {
	case "ext4":
		return []string{"noload", "norecovery"}
	case "xfs":
		return []string{"norecovery"}
	case "btrfs":
		return []string{"rescue=nologreplay", "nologreplay", "rescue=all"}
	}
	return nil
}

// wayOut says how to make the device usable.
func (st *staging) wayOut() string { return wayOut(st.found, st.want.Source) }

func wayOut(found filesystem.Found, source ledger.Source) string {
	where, clearing := source.DevicePath, "clear all of it (blkdiscard -z, or dd)"
	if source.Image {
		where, clearing = source.Path, "delete the volume" // its loop device is another image's when somebody reads this
	}
	switch {
	case found.Type == filesystem.UnknownData:
		return "; if nothing on it is needed, " + clearing
	case slices.Contains(filesystem.Types(), found.Type):
		return "; ask for " + found.Type
	}
	return fmt.Sprintf("; wipefs %s lists what was seen, but no gpt with a wrong checksum: take away what is not in use "+
		"any more (wipefs -o; of such a gpt, zero the 8 bytes at its place with dd), or, if nothing on it is needed, %s",
		where, clearing)
}
