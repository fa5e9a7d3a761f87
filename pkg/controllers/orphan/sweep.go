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

// Options of the sweeps.
type Options struct {
	Driver Driver
	Log    *slog.Logger
	Period time.Duration // from one sweep to the next
	Grace  time.Duration // how long a volume may be without a PersistentVolume
	Repair bool          // whether dangling attachments are detached
}

// Add adds the sweeps to what m runs. A driver that lists no volumes is an error.
func Add(m ctrl.Manager, o Options) error {
	if !o.Driver.CanList() {
		return fmt.Errorf("the driver %s lists no volumes, so that orphans cannot be looked for: leave out --orphan-period",
			o.Driver.Driver())
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
}

// Start sweeps until the context ends.
func (s *sweeper) Start(ctx context.Context) error {
	tick := time.NewTicker(s.Period)
	defer tick.Stop()
	for {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.metrics.failures.Inc()
			s.Log.Warn("storage and Kubernetes could not be compared: nothing is repaired", "error", csiclient.Message(err))
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
		clear(s.seen) // Two good sweeps in a row count.
		return err
	}
	confirmed := s.seen.confirm(w.compare(), time.Now(), s.Grace)
	s.report(ctx, confirmed)
	if !s.Repair {
		return nil
	}
	err = s.finish(ctx)
	for _, d := range confirmed {
		if d.kind == dangling {
			err = errors.Join(err, s.repair(ctx, d, w.id(d.node)))
		}
	}
	return err
}
