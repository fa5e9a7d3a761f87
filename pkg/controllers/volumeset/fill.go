package volumeset

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// Pauses between two attempts for a slot, and between a refusal and the next slot in its place.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 2 * time.Minute
)

// Driver creates and deletes volumes. csiclient.Client implements it.
type Driver interface {
	Driver() string
	HasTopology() bool
	Create(ctx context.Context, request csiclient.Request) (csiclient.Volume, error)
	Delete(ctx context.Context, handle string) error
}

// slotKey names a slot of a set.
type slotKey struct{ set, slot string }

// filler creates the volumes of slots concurrently. It retries each slot until it is known whether its volume exists.
type filler struct {
	client  client.Client
	live    client.Reader // bypasses the cache
	driver  Driver
	log     *slog.Logger
	events  events.EventRecorder
	shares  shares // of the workers, by set
	classes shares // by class, because a class that hangs may have many sets
	timeout time.Duration
	fresh   time.Duration    // how long after a live read it acts on it
	changed func(set string) // called when a set must be reconciled again
	now     func() time.Time
	// identity identifies this process. It sends requests only for slots with this identity.
	identity string

	queue workqueue.TypedRateLimitingInterface[slotKey]

	mu       sync.Mutex
	slots    map[slotKey]*progress
	handles  map[string]string // slot by the handle that the driver returned for it
	parked   []slotKey         // waiting for a worker
	failures map[string]failures
}

func newFiller(f *filler) *filler {
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[slotKey](firstPause,
		lastPause))
	f.now, f.identity = time.Now, uuid.NewString()
	f.slots, f.handles, f.failures = map[slotKey]*progress{}, map[string]string{}, map[string]failures{}
	return f
}

// Start runs the workers until the context ends. Only the leader runs it.
func (f *filler) Start(ctx context.Context) error {
	var group sync.WaitGroup
	for range f.shares.workers {
		group.Go(func() {
			for f.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	f.queue.ShutDown()
	group.Wait()
	return nil
}

func (f *filler) next(ctx context.Context) bool {
	key, stop := f.queue.Get()
	if stop {
		return false
	}
	defer f.queue.Done(key)
	class, may := f.admit(key)
	if !may {
		return true
	}
	defer f.leave(key, class)
	begun := f.now()
	end, err := f.attempt(ctx, key)
	if ctx.Err() != nil {
		return false
	}
	f.again(key, end)
	f.remember(key, begun, end, err)
	f.changed(key.set)
	return true
}

// again queues a slot for another attempt, after increasing pauses, until the slot is gone. The volume of a slot may be
// deleted before it is counted, and a slot that was given up must first be removed from the set.
func (f *filler) again(key slotKey, end outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if end.gone {
		f.queue.Forget(key)
		if handle := f.of(key).handle; f.handles[handle] == key.slot {
			delete(f.handles, handle)
		}
		delete(f.slots, key)
		return
	}
	f.queue.AddRateLimited(key)
}

// outcome is how an attempt ended.
type outcome struct {
	gone    bool // the slot no longer exists
	asked   bool // the driver was asked
	made    bool // the driver created the volume, or had it
	refused bool // the driver refused with a final error
	first   bool // the request was the first
	lost    bool // the slot's order is missing or damaged
	place   place
}

// attempt creates the volume of a slot and its PersistentVolume. It does nothing for a slot that is gone or that
// another manager has taken over. The slot is read past the cache right before the driver is asked, and again if the
// driver took long, so a manager that lost its lease long ago creates nothing. If there is no PersistentVolume, no
// claim has used the volume: our finalizers keep the PersistentVolume until the slot is gone, or the volume is deleted.
func (f *filler) attempt(ctx context.Context, key slotKey) (end outcome, err error) {
	begun := start{at: f.now(), taken: f.taken(key)}
	set, slot, end, err := f.own(ctx, key)
	if err != nil || slot == nil {
		return end, err
	}
	p, there := f.progressOf(key), &corev1.PersistentVolume{}
	if p.made || p.withdrawn { // Another request would use the name twice.
		return end, nil
	}
	err = f.live.Get(ctx, client.ObjectKey{Name: key.slot}, there)
	if apierrors.IsNotFound(err) || err == nil && p.handle != "" && !f.isOf(there, p.handle) {
		return f.create(ctx, set, *slot, begun)
	}
	if err == nil { // Usually the answer to its creation was lost.
		f.made(key, begun.taken)
		end = outcome{made: true, place: slot.Segments}
	}
	return end, err
}

// create asks the driver for the volume of a slot, and creates its PersistentVolume.
func (f *filler) create(
	ctx context.Context, set *v1alpha1.PersistentVolumeSet, slot v1alpha1.VolumeSlot, begun start,
) (end outcome, err error) {
	key := slotKey{set: set.Name, slot: slot.Name}
	call, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	order, err := orderOf(set, slot)
	if err != nil {
		return outcome{lost: true, place: slot.Segments}, err
	}
	if f.isOld(begun.at) {
		return end, errOld
	}
	may, first := f.ask(key)
	if !may {
		return end, nil
	}
	end = outcome{asked: true, first: first, place: slot.Segments}
	volume, cause := f.driver.Create(call, request(slot, order))
	if cause != nil {
		err = fmt.Errorf("the driver did not create %s: %s", slot.Name, csiclient.Message(cause))
		end.refused = csiclient.IsFinal(cause)
		if end.refused && !f.refused(key, first, csiclient.IsAbsent(cause), begun.taken) {
			err = fmt.Errorf("%w (%w)", err, errOpen)
		}
		return end, err
	}
	if err := f.take(ctx, key, volume.Handle); err != nil {
		return end, err
	}
	end.made = true
	return end, f.publish(ctx, key, begun, persistentVolume(f.driver.Driver(), set, slot.Name, order, volume))
}

// publish creates the PersistentVolume of a slot. If the driver took long, the slot must still be this manager's.
func (f *filler) publish(ctx context.Context, key slotKey, begun start, v *corev1.PersistentVolume) error {
	if f.isOld(begun.at) {
		if owns, err := f.stillOwns(ctx, key, v.Spec.CSI.VolumeHandle); err != nil || !owns {
			return err
		}
	}
	err := f.client.Create(ctx, v)
	if apierrors.IsAlreadyExists(err) { // Another manager was faster.
		err = f.confirm(ctx, key, v.Spec.CSI.VolumeHandle)
	}
	if err != nil {
		return fmt.Errorf("the PersistentVolume of %s was not created: %w", key.slot, err)
	}
	f.made(key, begun.taken)
	return nil
}

// errOpen reports that a slot stays although its request was refused.
var errOpen = errors.New("an earlier request may have made it: it is asked for until it is there")

// slotOf returns the slot of that name, or nil if it is gone.
func slotOf(set *v1alpha1.PersistentVolumeSet, name string) *v1alpha1.VolumeSlot {
	at := slices.IndexFunc(set.Status.Slots, func(s v1alpha1.VolumeSlot) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &set.Status.Slots[at]
}
