package volumeset

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/printable"
)

// freshFor is how long after a read past the cache a manager acts on it. A manager leads for at most 10 seconds after
// it has renewed its lease, and another one after 15 seconds at the earliest. A manager that was stopped in between
// therefore looks again, because others may have led, and their volumes may have been used and deleted.
const freshFor = 5 * time.Second

var errOld = errors.New("this process was stopped, or the API server is slow: its last look is too old to act on, and" +
	" it looks again")

// start is what is known when an attempt for a slot begins.
type start struct {
	at    time.Time // before the first read past the cache
	taken int       // how often the slot was taken from another manager
}

// isOld reports whether a read past the cache that began at that time is too old to act on.
func (f *filler) isOld(read time.Time) bool { return f.now().Sub(read) > f.fresh }

// own reads a slot past the cache. It returns no slot if the slot is gone or another manager's.
func (f *filler) own(ctx context.Context, key slotKey) (
	set *v1alpha1.PersistentVolumeSet, slot *v1alpha1.VolumeSlot, end outcome, err error,
) {
	set = &v1alpha1.PersistentVolumeSet{}
	if err := f.live.Get(ctx, client.ObjectKey{Name: key.set}, set); err != nil {
		return set, nil, outcome{gone: apierrors.IsNotFound(err)}, client.IgnoreNotFound(err)
	}
	if slot = slotOf(set, key.slot); slot == nil {
		return set, nil, outcome{gone: true}, nil
	}
	if slot.Manager != f.identity { // Or our takeover is not written yet.
		return set, nil, end, nil
	}
	return set, slot, end, nil
}

// stillOwns reports, by a new read, whether a slot is still this manager's. It fails if the slot is gone, because then
// nothing may know the volume that the driver has returned. Nobody looks at a slot that is gone again, so that an event
// of the set says so too.
func (f *filler) stillOwns(ctx context.Context, key slotKey, handle string) (bool, error) {
	read := f.now()
	set, slot, end, err := f.own(ctx, key)
	switch {
	case err != nil:
		return false, err
	case end.gone:
		err = fmt.Errorf("the driver answered to %s with the handle %q so late that the slot is gone: if no"+
			" PersistentVolume has this handle, and nobody keeps the volume, delete it in the storage", key.slot, handle)
		set.Name = key.set // The set may be gone, too.
		f.events.Eventf(set, nil, corev1.EventTypeWarning, "VolumeWithoutSlot", "Fill", "%s", printable.Event(err.Error()))
		return false, err
	case slot == nil:
		return false, nil // Another manager creates it.
	case f.isOld(read):
		return false, errOld
	}
	return true, nil
}
