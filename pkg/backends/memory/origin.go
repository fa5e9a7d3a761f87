package memory

import "github.com/stowage-csi/stowage/pkg/backends"

// origin is the source of a volume's contents.
type origin struct {
	content          backends.ContentSource
	handle           string // of the volume or snapshot; empty for an empty volume
	preferred, least int64  // sizes in bytes of a volume with these contents
	hold             *hold
	raw              bool // created as a raw device
}

func nothing() (origin, error) {
	return origin{preferred: defaultSize, least: step, hold: new(hold)}, nil
}

func (b *backend) volumeOrigin(handle string) (origin, error) {
	v, err := b.still(handle)
	if err != nil {
		return origin{}, err
	}
	return origin{backends.ContentSource{Volume: handle}, handle, v.size, v.size, &v.hold, v.raw}, nil
}

func (b *backend) snapshotOrigin(handle string) (origin, error) {
	s, err := b.snapshots.get(handle)
	if err != nil {
		return origin{}, err
	}
	return origin{backends.ContentSource{Snapshot: handle}, handle, s.size, s.size, &s.hold, s.raw}, s.whole(handle)
}

// still returns the volume if its data cannot change during a copy. A copy takes time: if the volume is written to
// meanwhile, the copy shows no single instant.
func (b *backend) still(handle string) (*volume, error) {
	v, err := b.volumes.get(handle)
	if err != nil {
		return nil, err
	}
	if v.mounted {
		return nil, backends.Errorf(backends.InUse,
			"volume %q is mounted on node %q and cannot be copied at one instant: unmount it first", handle, b.node)
	}
	return v, v.whole(handle)
}

// hold tracks the work outside the lock on the files of a volume or snapshot.
type hold struct {
	readers  int // how many copies of the files are being made
	removing bool
}

// whole checks that the files are not being removed.
func (h *hold) whole(handle string) error {
	if h.removing {
		return backends.Errorf(backends.Busy, "%q is being deleted", handle)
	}
	return nil
}

// idle checks that no work on the files is under way.
func (h *hold) idle(handle string) error {
	if h.readers > 0 {
		return backends.Errorf(backends.Busy, "%q is being copied: ask again", handle)
	}
	return h.whole(handle)
}

func (h *hold) beginRemoval(handle string) error {
	if err := h.idle(handle); err != nil {
		return err
	}
	h.removing = true
	return nil
}
