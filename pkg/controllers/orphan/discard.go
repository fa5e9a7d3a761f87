package orphan

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// discard deletes the volumes that no PersistentVolume has named for Options.DeleteAfter, if leaked volumes are rare.
// After a failed deletion a volume waits that long again.
func (s *sweeper) discard(ctx context.Context, w world, confirmed []difference) error {
	due := s.due(w, confirmed)
	if len(due) == 0 {
		return nil
	}
	if err := w.leaksAreRare(); err != nil {
		return err
	}
	due, err := s.withoutSlots(w, due)
	for _, d := range due[:min(len(due), discardsAtOnce)] {
		err = errors.Join(err, s.discardOne(ctx, d))
	}
	return err
}

// discardsAtOnce is the maximum number of deletions in a sweep. Each reads all PersistentVolumes.
const discardsAtOnce = 20

// due returns the leaked volumes whose time is over and that are not attached. The previous sweep must have succeeded,
// too.
func (s *sweeper) due(w world, confirmed []difference) (due []difference) {
	if s.DeleteAfter == 0 || s.inRow < 2 {
		return nil
	}
	attached := w.attachedHandles()
	for _, d := range confirmed {
		if d.kind == leaked && !attached[d.handle] && time.Since(s.seen[d]) >= s.DeleteAfter {
			due = append(due, d)
		}
	}
	return due
}

// discardOne deletes a leaked volume. It reads the PersistentVolumes right before, since one may have been created for
// the volume while others were deleted.
func (s *sweeper) discardOne(ctx context.Context, d difference) error {
	if named, err := s.isNamedNow(ctx, d.handle); err != nil || named {
		return err
	}
	if err := s.Deleter.Delete(ctx, d.handle); err != nil {
		s.seen[d] = time.Now()
		sentence := fmt.Sprintf("the volume %q, which no PersistentVolume names, could not be deleted, and is tried again "+
			"in %s: %s", d.handle, s.DeleteAfter, csiclient.Message(err))
		s.say(ctx, d, corev1.EventTypeWarning, "VolumeNotDeleted", "Delete", sentence)
		return errors.New(sentence)
	}
	s.metrics.deletions.Inc()
	sentence := fmt.Sprintf("the volume %q was deleted: no PersistentVolume had named it for %s", d.handle, s.DeleteAfter)
	s.Log.Warn(sentence, "volume", d.handle)
	s.say(ctx, d, corev1.EventTypeNormal, "VolumeDeleted", "Delete", sentence)
	return nil
}

// namesAtOnce is the page size for reading PersistentVolumes past the cache.
const namesAtOnce = 500

// isNamedNow reports whether a PersistentVolume of the driver names the volume now, past the cache.
func (s *sweeper) isNamedNow(ctx context.Context, handle string) (bool, error) {
	for next := ""; ; {
		var list corev1.PersistentVolumeList
		if err := s.live.List(ctx, &list, client.Limit(namesAtOnce), client.Continue(next)); err != nil {
			return false, fmt.Errorf("list PersistentVolumes before the leaked volume %q is deleted: %w", handle, err)
		}
		for _, volume := range list.Items {
			source := volume.Spec.CSI
			if source != nil && source.Driver == s.Driver.Driver() && source.VolumeHandle == handle {
				return true, nil
			}
		}
		if next = list.Continue; next == "" {
			return false, nil
		}
	}
}

// leaksAreRare fails if the volumes without a PersistentVolume are too many to be leaked. Then PersistentVolumes were
// lost, for example when an older etcd was restored, or another cluster created the volumes.
func (w world) leaksAreRare() error {
	left, known, stored := 0, 0, w.handles()
	for handle := range stored {
		if w.isLeaked(handle) {
			left++
		}
	}
	for handle := range w.both() {
		if stored[handle] {
			known++
		}
	}
	if known == 0 || left > 1 && left > known/leaksOf {
		return fmt.Errorf("PersistentVolumes name %d volumes of the storage, and %d more are there: they are too many to be "+
			"left over, and none is deleted. Write PersistentVolumes for those that are lost, and delete the others at the "+
			"storage", known, left)
	}
	return nil
}

// leaksOf is the minimum number of volumes with a PersistentVolume for each leaked volume.
const leaksOf = 10

// attachedHandles returns the volumes that are attached somewhere or named by a VolumeAttachment.
func (w world) attachedHandles() map[string]bool {
	handles := map[string]bool{}
	for _, volume := range w.stored {
		if len(volume.Nodes) > 0 {
			handles[volume.Handle] = true
		}
	}
	for _, a := range w.attachments {
		handles[a.handle] = true
	}
	return handles
}
