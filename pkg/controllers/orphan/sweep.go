package orphan

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// Driver lists the volumes of a driver.
type Driver interface {
	Driver() string
	CanList() bool
	ListsNodes() bool
	List(ctx context.Context) ([]csiclient.Listed, error)
}

// Deleter deletes volumes of the driver.
type Deleter interface {
	ListsOwn() bool
	Delete(ctx context.Context, handle string) error
}

// Options of the sweeps.
type Options struct {
	Driver Driver
	Log    *slog.Logger
	Period time.Duration // from one sweep to the next
	Grace  time.Duration // time before a volume without a PersistentVolume is reported
	Repair bool          // detach dangling attachments
	// DeleteAfter is the time after which the Deleter deletes a volume without a PersistentVolume; 0 deletes none.
	DeleteAfter time.Duration
	Deleter     Deleter
}

// Add adds the sweeps to m. It fails if the driver cannot list volumes, or if volumes are to be deleted and the driver
// may list those of other clusters.
func Add(m ctrl.Manager, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	s := &sweeper{
		Options: o, cache: m.GetClient(), live: m.GetAPIReader(), events: m.GetEventRecorder("stowage-orphan"),
		seen: memory{}, slots: map[string]time.Time{}, told: map[difference]bool{}, metrics: newMetrics(o.Driver.Driver()),
	}
	if err := s.metrics.register(registry.Registry); err != nil {
		return err
	}
	return m.Add(s)
}

func (o Options) check() error {
	if !o.Driver.CanList() {
		return fmt.Errorf("the driver %s lists no volumes, so that orphans cannot be looked for: leave out --orphan-period",
			o.Driver.Driver())
	}
	if o.DeleteAfter > 0 && !o.Deleter.ListsOwn() {
		return fmt.Errorf("the driver %s may list volumes of other clusters, which nothing here names: leave out "+
			"--delete-leaked-after, and delete leaked volumes at the storage", o.Driver.Driver())
	}
	return nil
}

// sweepLimit is the maximum duration of a sweep. Without it, a driver that does not answer would silently stop all
// sweeps.
const sweepLimit = 10 * time.Minute

// sweeper compares the storage with Kubernetes periodically. It runs in the leader.
type sweeper struct {
	Options
	cache   client.Client
	live    client.Reader // bypasses the cache
	events  events.EventRecorder
	metrics *metrics
	seen    memory
	slots   map[string]time.Time // since when each open slot of a PersistentVolumeSet has been seen
	told    map[difference]bool
	inRow   int // successful sweeps since the last failure
}

// Start sweeps until the context ends.
func (s *sweeper) Start(ctx context.Context) error {
	tick := time.NewTicker(s.Period)
	defer tick.Stop()
	for {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.metrics.failures.Inc()
			s.Log.Warn("a comparison of the storage with Kubernetes failed, or what it found could not be repaired",
				"error", csiclient.Message(err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *sweeper) sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepLimit)
	defer cancel()
	w, err := s.look(ctx)
	if err == nil {
		err = w.believable()
	}
	if err != nil {
		s.seen.interrupt()
		s.inRow = 0
		return err
	}
	s.inRow++
	now := time.Now()
	s.noteSlots(w.slots, now)
	confirmed := s.seen.confirm(w.compare(), now, s.Grace)
	s.report(ctx, confirmed)
	return errors.Join(s.repairAll(ctx, w, confirmed), s.discard(ctx, w, confirmed))
}

// repairAll makes csi-attacher detach the dangling attachments.
func (s *sweeper) repairAll(ctx context.Context, w world, confirmed []difference) error {
	if !s.Repair {
		return nil
	}
	err := s.finish(ctx)
	for _, d := range confirmed {
		if d.kind == dangling {
			err = errors.Join(err, s.repair(ctx, d, w.id(d.node)))
		}
	}
	return err
}
