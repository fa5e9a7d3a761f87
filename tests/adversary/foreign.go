package adversary

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// isImage reports whether a volume is a filesystem on an undamaged image.
func (a *actor) isImage(v *volume) bool {
	return !v.damaged && !v.raw && a.setup.Classes[v.class].Sized
}

// brand makes the image of an unused volume look like a member of a RAID, by a superblock without a checksum, beside
// the filesystem on it. Such an image must not be mounted. The previous bytes are restored.
func (a *actor) brand(s Step, v *volume) {
	path := a.data(v)
	if path == "" || v.used || !a.isImage(v) {
		return
	}
	image, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return // its disk fails
	}
	defer image.Close() //nolint:errcheck // what counts is read back by its users
	place := (v.bytes/512 - 16) &^ 7 * 512
	before, sign := make([]byte, 256), make([]byte, 256)
	binary.LittleEndian.PutUint32(sign, 0xa92b4efc) // md(4), version 1.0
	binary.LittleEndian.PutUint32(sign[4:], 1)
	binary.LittleEndian.PutUint64(sign[144:], uint64(place/512))
	_, err = image.ReadAt(before, place)
	if _, written := image.WriteAt(sign, place); errors.Join(err, written) != nil {
		return
	}
	if a.offer(s, v, csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER) {
		a.blame("what is foreign is left alone: %s was staged though a RAID has it", v)
		a.withdraw(s, v)
	}
	if _, err := image.WriteAt(before, place); err != nil {
		a.blame("%v", err)
	}
}

// glimpse resets the image of a volume to its state in the middle of its use, as after a power loss, and tries
// read-only staging. That is refused, or shows all synced data. Then the volume is used again.
func (a *actor) glimpse(s Step, v *volume) {
	path := a.data(v)
	if path == "" || !v.used || !a.isImage(v) || v.contents == nil {
		return
	}
	lost, err := os.ReadFile(path)
	if err != nil {
		return // its disk fails
	}
	if a.leave(s, v, false); v.used {
		return
	}
	if err := overwrite(path, lost); err != nil {
		a.blame("%v", err)
		return
	}
	v.cut = true
	if a.offer(s, v, csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY) {
		found, err := look(a.staging(v), v.raw)
		if err == nil {
			err = v.contents.now(found)
		}
		if err != nil {
			a.blame("acknowledged data: %s is staged for reading only without all that was synced: %v", v, err)
		}
		a.withdraw(s, v)
	}
	a.use(Step{Op: Use}, v, false)
}

// overwrite replaces the bytes of a file, which stays the same file.
func overwrite(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(data, 0)
	return errors.Join(err, file.Close())
}

// offer stages an unused volume, and reports whether that was not refused.
func (a *actor) offer(s Step, v *volume, mode csi.VolumeCapability_AccessMode_Mode) bool {
	capability := v.capability()
	capability.AccessMode.Mode = mode
	r := a.requestFor(s, v, "NodeStageVolume", false, codes.InvalidArgument)
	r.send = func(ctx context.Context) (string, error) {
		if err := os.MkdirAll(a.staging(v), 0o755); err != nil {
			return "", err
		}
		_, err := a.uses().NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
			VolumeId: v.id, StagingTargetPath: a.staging(v), VolumeCapability: capability, VolumeContext: v.context,
		})
		return "", err
	}
	err := a.ask(r)
	if err != nil {
		a.emptied(v)
	}
	return err == nil
}

// withdraw unstages a volume that was staged by an offer.
func (a *actor) withdraw(s Step, v *volume) {
	a.takesDown(s, v, "NodeUnstageVolume", false, func(ctx context.Context) error {
		_, err := a.uses().NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.id,
			StagingTargetPath: a.staging(v)})
		return err
	})
	a.emptied(v)
}

// emptied removes the staging path, which must be empty.
func (a *actor) emptied(v *volume) {
	if err := os.Remove(a.staging(v)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.blame("gone means gone: after a refusal, %s is not empty: %v", a.staging(v), err)
	}
}

// foreign returns tracks that make volumes look foreign, and reset them to their state in the middle of their use.
func (d dice) foreign() [][]Step {
	tracks := make([][]Step, 3)
	for i := range tracks {
		tracks[i] = []Step{{Op: Create, MiB: 8}}
		for range 4 {
			tracks[i] = append(tracks[i], Step{Op: Use}, Step{Op: Write, Count: 4 + d.IntN(20), Names: 20})
			if d.chance(60) {
				tracks[i] = append(tracks[i], Step{Op: Glimpse}, Step{Op: Write, Count: 1 + d.IntN(4)})
			}
			tracks[i] = append(tracks[i], Step{Op: Leave})
			if d.chance(60) {
				tracks[i] = append(tracks[i], Step{Op: Brand})
			}
		}
	}
	return tracks
}
