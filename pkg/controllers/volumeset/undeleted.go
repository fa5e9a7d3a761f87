package volumeset

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// mostNote is how long the text of an event may be, in bytes, a little less than the API server takes.
const mostNote = 1000

// undeleted is what the driver said about volumes that it did not delete, by PersistentVolume.
type undeleted struct {
	mu    sync.Mutex
	words map[string]string
}

// note notes what the driver said, and reports whether it is not what it said last.
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

// of is what was said about the first of the volumes that could not be deleted, nothing if all could.
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

// tell says in an event, once, why the volume of a PersistentVolume was not deleted. Its sets say it too.
func (r *remover) tell(ctx context.Context, v *corev1.PersistentVolume, words string) {
	if r.failed.note(v.Name, words) {
		r.events.Eventf(v, nil, corev1.EventTypeWarning, "VolumeFailedDelete", "Delete", "%s", bounded(words, mostNote))
		r.changed(ctx, v)
	}
}
