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
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// The pauses between two attempts for one slot, and between a refusal and the next slot of its set.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 2 * time.Minute
	// tries is how often a slot is dropped in vain because somebody else wrote the set's status. It is refused again after that.
	tries = 10
)

// Driver is where volumes come from; csiclient.Client is one.
type Driver interface {
	Driver() string
	HasTopology() bool
	Create(ctx context.Context, request csiclient.Request) (csiclient.Volume, error)
	Delete(ctx context.Context, handle string) error
}

// slotKey names a slot of a set.
type slotKey struct{ set, slot string }

// filler creates the volumes of slots: several at a time, each again and again until the driver has said what became of it.
type filler struct {
	client  client.Client
	live    client.Reader // reads past the cache
	driver  Driver
	log     *slog.Logger
	workers int
	timeout time.Duration
	changed func(set string) // is called when a set should be looked at again
	now     func() time.Time
	// identity is that of this process, which asks for the slots that bear it.
	identity string

	queue workqueue.TypedRateLimitingInterface[slotKey]

	mu       sync.Mutex
	slots    map[slotKey]*progress
	busy     map[string]int     // workers, by set
	parked   []slotKey          // which wait for a worker
	failures map[string]failure // by set
}

// failure is why the last attempts for a set did not succeed.
type failure struct {
	err   error
	times int       // refusals in a row
	until time.Time // no new slot before
}

func newFiller(f *filler) *filler {
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[slotKey](firstPause, lastPause))
	f.now, f.identity = time.Now, uuid.NewString()
	f.slots, f.busy, f.failures = map[slotKey]*progress{}, map[string]int{}, map[string]failure{}
	return f
}

// forget forgets what was wrong with a set that is gone: another of its name begins anew.
func (f *filler) forget(set string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.failures, set)
}

// failure returns why a set gets no volumes now; its error is nil when nothing is wrong.
func (f *filler) failure(set string) failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failures[set]
}

// Start works until the context ends, as the leader only.
func (f *filler) Start(ctx context.Context) error {
	var group sync.WaitGroup
	for range f.workers {
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
	if !f.admit(key) {
		return true
	}
	defer f.leave(key)
	gone, err := f.attempt(ctx, key)
	if ctx.Err() != nil {
		return false
	}
	refused := false
	if err != nil && isRefusal(err) {
		if dropped := f.drop(ctx, key); dropped != nil {
			err = errors.Join(err, dropped) // The slot stays, and is asked for again.
		} else {
			refused = true
		}
	}
	f.note(key, err, gone || refused)
	f.changed(key.set)
	return true
}

// note remembers how an attempt ended. A slot that has its volume is looked at until it is gone, since the object may be deleted
// before anybody counts it; ever later, since it goes as soon as the cache has the object.
func (f *filler) note(key slotKey, err error, ended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ended {
		f.queue.Forget(key)
		delete(f.slots, key)
	} else {
		f.queue.AddRateLimited(key)
	}
	if err == nil {
		delete(f.failures, key.set)
		return
	}
	f.log.Warn("a volume was not created", "set", key.set, "volume", key.slot, "error", err)
	last := f.failures[key.set]
	last.err = err
	if ended {
		pause := min(lastPause, firstPause<<min(last.times, 10))
		last.times, last.until = last.times+1, f.now().Add(pause)
	}
	f.failures[key.set] = last
}

// refusal is an answer by which the driver says that there is no volume.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func isRefusal(err error) bool {
	_, ok := errors.AsType[refusal](err)
	return ok
}

// attempt creates the volume of a slot and its PersistentVolume. A slot that is gone needs nothing, nor one that another manager
// has taken over. It is read past the cache right before the driver is asked, so that a manager that lost its lease long ago asks
// for nothing.
func (f *filler) attempt(ctx context.Context, key slotKey) (gone bool, err error) {
	taken, set := f.taken(key), &v1alpha1.PersistentVolumeSet{}
	if err := f.live.Get(ctx, client.ObjectKey{Name: key.set}, set); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	slot := slotOf(set, key.slot)
	if slot == nil {
		return true, nil
	}
	if slot.Manager != f.identity { // Or it is not written yet that it is ours.
		return false, nil
	}
	if f.isMade(key) { // Once more, and the name would be used twice.
		return false, nil
	}
	err = f.live.Get(ctx, client.ObjectKey{Name: key.slot}, &corev1.PersistentVolume{})
	if apierrors.IsNotFound(err) {
		err = f.create(ctx, set, *slot)
	}
	if err == nil {
		f.made(key, taken)
	}
	return false, err
}

// create asks the driver for the volume of a slot, and makes its PersistentVolume.
func (f *filler) create(ctx context.Context, set *v1alpha1.PersistentVolumeSet, slot v1alpha1.VolumeSlot) error {
	key := slotKey{set: set.Name, slot: slot.Name}
	call, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	first := f.ask(key)
	volume, err := f.driver.Create(call, request(slot))
	if err != nil {
		text := fmt.Errorf("the driver did not create %s: %s", slot.Name, csiclient.Message(err))
		if first && csiclient.IsFinal(err) {
			f.refused(key)
			return refusal{text}
		}
		return text
	}
	err = f.client.Create(ctx, persistentVolume(f.driver.Driver(), set, slot, volume))
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("the PersistentVolume of %s was not created: %w", slot.Name, err)
	}
	return nil
}

// errShared says that a slot stays although its request was refused.
var errShared = errors.New("another manager may have asked for the same volume; it is asked for until it is there")

// drop removes a slot that will have no volume, unless another manager has had it and may have asked for it. That is looked at after
// the slot was read: who takes a slot back knows so before the set says it.
func (f *filler) drop(ctx context.Context, key slotKey) (err error) {
	for range tries {
		set := &v1alpha1.PersistentVolumeSet{}
		if err := f.live.Get(ctx, client.ObjectKey{Name: key.set}, set); err != nil {
			return client.IgnoreNotFound(err)
		}
		slot := slotOf(set, key.slot)
		if slot == nil {
			return nil
		}
		if slot.Manager != f.identity || f.taken(key) > 0 {
			return errShared
		}
		set.Status.Slots = slices.DeleteFunc(set.Status.Slots, func(s v1alpha1.VolumeSlot) bool { return s.Name == key.slot })
		if err = f.client.Status().Update(ctx, set); !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

// slotOf returns the slot of that name, nil when it is gone.
func slotOf(set *v1alpha1.PersistentVolumeSet, name string) *v1alpha1.VolumeSlot {
	at := slices.IndexFunc(set.Status.Slots, func(s v1alpha1.VolumeSlot) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &set.Status.Slots[at]
}
