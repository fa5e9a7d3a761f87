package node

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
)

const (
	// measureTime is how long one device has for its answer, which takes microseconds.
	measureTime = time.Second
	// mostMeasured is how many volumes are measured: as many as EC2 attaches to an instance.
	mostMeasured = 128
)

// Measured are the measurements of a staged volume.
type Measured struct {
	Volume string
	Values []backends.Measurement
}

// Measure returns the measurements of the staged volumes that have a device of their own. It returns when all have
// answered, or soon after the context ends. A volume that cannot be measured is left out, and logged once.
func (s *Service) Measure(ctx context.Context) []Measured {
	staged := s.ofDevices()
	s.silent.forget(staged)
	var all []Measured
	for i, record := range staged {
		err := fmt.Errorf("%d other volumes are measured, which is the most", mostMeasured)
		var values []backends.Measurement
		if i < mostMeasured {
			values, err = s.measure(ctx, record)
		}
		if ctx.Err() != nil { // Those before it have taken the time.
			break
		}
		s.silent.tell(ctx, s.log, record.Volume, err)
		if err == nil {
			all = append(all, Measured{record.Volume, values})
		}
	}
	return all
}

// ofDevices returns the records of the staged volumes that have a device of their own, in a fixed order.
func (s *Service) ofDevices() []ledger.Record {
	records := slices.DeleteFunc(s.ledger.Records(), func(r ledger.Record) bool {
		return r.Staged == nil || r.Staged.Pending || r.Staged.Source.Kind != ledger.Device || r.Staged.Source.Image ||
			r.Staged.Source.DevicePath == ""
	})
	slices.SortFunc(records, func(x, y ledger.Record) int { return cmp.Compare(x.Volume, y.Volume) })
	return records
}

func (s *Service) measure(ctx context.Context, record ledger.Record) ([]backends.Measurement, error) {
	ctx, cancel := context.WithTimeout(s.calls.With(ctx), measureTime)
	defer cancel()
	call := deadline.Call{Name: fmt.Sprintf("measure volume %q", record.Volume)}
	return deadline.Do(ctx, call, func(ctx context.Context) ([]backends.Measurement, error) {
		return s.features.Measure.Measure(ctx, record.Volume, record.Staged.Source.DevicePath)
	}, nil)
}

// unmeasured logs each failure to measure a volume once, and that the volume is measured again. The zero value is ready
// for use.
type unmeasured struct {
	mu   sync.Mutex
	told map[string]bool // by volume
}

// tell logs an error, or its end, unless it did so before.
func (u *unmeasured) tell(ctx context.Context, log *slog.Logger, volume string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch failed := err != nil; {
	case failed && !u.told[volume]:
		if u.told == nil {
			u.told = map[string]bool{}
		}
		u.told[volume] = true
		log.WarnContext(ctx, "a volume has no metrics until it can be measured", "volume", volume, "error", err)
	case !failed && u.told[volume]:
		delete(u.told, volume)
		log.InfoContext(ctx, "a volume is measured again", "volume", volume)
	}
}

// forget drops volumes that are not staged any more.
func (u *unmeasured) forget(staged []ledger.Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for volume := range u.told {
		if !slices.ContainsFunc(staged, func(r ledger.Record) bool { return r.Volume == volume }) {
			delete(u.told, volume)
		}
	}
}
