package volumeset

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/stowage-csi/stowage/pkg/printable"
)

// undeleted holds the driver's errors for volumes that it did not delete, by PersistentVolume.
type undeleted struct {
	mu    sync.Mutex
	words map[string]string
}

// note stores the driver's error, and reports whether it differs from the previous one.
func (u *undeleted) note(volume, words string) (isNew bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.words == nil {
		u.words = map[string]string{}
	}
	isNew = u.words[volume] != words
	u.words[volume] = words
	return isNew
}

func (u *undeleted) forget(volume string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.words, volume)
}

// of returns the error of the first volume that is being deleted and has one, or "".
func (u *undeleted) of(volumes []*corev1.PersistentVolume) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, v := range volumes {
		if words := u.words[v.Name]; words != "" && v.DeletionTimestamp != nil {
			return words
		}
	}
	return ""
}

// tell records an event that says why the volume of a PersistentVolume was not deleted, unless the text is the same as
// the last time. The PersistentVolume's sets report it too.
func (r *remover) tell(ctx context.Context, v *corev1.PersistentVolume, words string) {
	if r.failed.note(v.Name, words) {
		r.events.Eventf(v, nil, corev1.EventTypeWarning, "VolumeFailedDelete", "Delete", "%s", printable.Event(words))
		r.changed(ctx, v)
	}
}
