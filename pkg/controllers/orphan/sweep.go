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

// Driver is what the sweeps ask of a driver.
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
	Grace  time.Duration // how long a volume may be without a PersistentVolume
	Repair bool          // whether dangling attachments are detached
	// DeleteAfter is how long a volume must have no PersistentVolume to be deleted by the Deleter; 0 deletes none.
	DeleteAfter time.Duration
	Deleter     Deleter
}

// Add adds the sweeps to what m runs. A driver that lists no volumes is an error, and so is the deletion of volumes
// of a driver that may list those of others.
func Add(m ctrl.Manager, o Options) error {
	if err := o.check(); err != nil {
		return err
	}
	s := &sweeper{
		Options: o, cache: m.GetClient(), live: m.GetAPIReader(), events: m.GetEventRecorder("stowage-orphan"),
		seen: memory{}, told: map[difference]bool{}, metrics: newMetrics(o.Driver.Driver()),
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

// sweepLimit is how long a sweep may take: a driver that does not answer would stop all sweeps without a word.
const sweepLimit = 10 * time.Minute

// sweeper compares the storage with Kubernetes, again and again. It runs in the manager that leads.
type sweeper struct {
	Options
	cache   client.Client
	live    client.Reader // reads past the cache
	events  events.EventRecorder
	metrics *metrics
	seen    memory
	told    map[difference]bool
	inRow   int // sweeps that did not fail, since one did
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
	confirmed := s.seen.confirm(w.compare(), time.Now(), s.Grace)
	s.report(ctx, confirmed)
	return errors.Join(s.repairAll(ctx, w, confirmed), s.discard(ctx, w, confirmed))
}

// repairAll has the dangling attachments detached.
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
