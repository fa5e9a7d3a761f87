package ebs

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/patient"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestConformanceUnderFaults runs the conformance suite in each weather, with a separate schedule for each check: a
// caller that repeats its calls until their outcome is known finds all promises kept.
func TestConformanceUnderFaults(t *testing.T) {
	// The suite reopens the backend itself.
	classes := slices.DeleteFunc(weathers(), func(w weather) bool { return w.crashes > 0 })
	if *suites == 0 {
		classes = classes[:1]
	}
	for _, w := range classes {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			c := &faulty{weather: w, seed: *firstSeed}
			for range max(1, *suites) {
				backendtest.Run(t, c.harness())
			}
			t.Logf("%d schedules: %d of %d requests met a fault", c.worlds, c.faults, c.requests)
		})
	}
}

// faulty creates regions in which requests meet faults.
type faulty struct {
	weather
	seed                     uint64
	worlds, faults, requests int
}

func (c *faulty) harness() backendtest.Harness {
	definition := ebs.Definition()
	open := definition.Open
	definition.Open = func(ctx context.Context, o backends.Options) (*backends.Instance, error) {
		config := *o.Config.(*ebs.Config)
		config.Timing = ebs.Definition().NewConfig().(*ebs.Config).Timing
		o.Config = &config
		instance, err := open(ctx, o)
		if err != nil {
			return nil, err
		}
		return instance, patiently(instance, c.lag)
	}
	h := region.Harness(definition, c.region)
	h.Patience = 2 * time.Hour // A call may wait for several stuck transitions, one after the other.
	return h
}

// patiently makes calls of an instance as an orchestrator does, over a cloud with that lag.
func patiently(instance *backends.Instance, lag time.Duration) error {
	return patient.Wrap(instance, patient.Manner{Limit: longest, Patience: time.Hour, Lag: lag})
}

func (c *faulty) region(tb testing.TB) *region.Region {
	tb.Helper()
	c.seed++
	c.worlds++
	w := c.weather.region(tb, c.seed)
	tb.Cleanup(func() {
		w.Proxy.Stop()
		w.Server.Calm()
		<-time.After(2 * longest) // Delayed requests have arrived.
		c.faults += faultsIn(w)
		c.requests += len(w.Proxy.Log())
	})
	return w
}
