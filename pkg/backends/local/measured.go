package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/background"
)

const (
	// measureAge is after how long a measurement is repeated. measureShare limits how much of the time measuring may take,
	// to one part in this many, and so may delay that.
	measureAge   = time.Minute
	measureShare = 20
	// measureLimit ends a measurement: a pod can make a tree that takes hours to measure, and others wait for their turn.
	measureLimit = 5 * time.Minute
	// mostMeasurements is how many measurements run at the same time on a filesystem.
	mostMeasurements = 2
)

// measured is how many bytes of a volume or snapshot are its own, if only a look at each file or extent tells that.
// Until the first measurement it is 0.
type measured struct{ last atomic.Pointer[measurement] }

// measurement is one measurement. Its times are by the monotonic clock.
type measurement struct {
	holding
	old  time.Time // when it must be repeated
	soon time.Time // when it may be repeated, if there is reason to
}

// held returns the result of the last measurement.
func (m *measured) held() holding {
	if last := m.last.Load(); last != nil {
		return last.holding
	}
	return holding{free: math.MaxInt64}
}

// isDue reports whether to measure, again or for the first time. If more space is free than at the last measurement,
// the item may hold less now.
func (m *measured) isDue(free int64) bool {
	last, now := m.last.Load(), time.Now()
	return last == nil || !now.Before(last.old) || free > last.free && !now.Before(last.soon)
}

// measuring is an item that is to be measured.
type measuring struct {
	*measured
	handle string
	path   string
	bytes  func(context.Context, string) (int64, error)
	free   func() (int64, error) // of its filesystem
}

// since is when the measurement is due at the latest.
func (m measuring) since() time.Time {
	if last := m.last.Load(); last != nil {
		return last.old
	}
	return time.Time{}
}

// measure measures the items of the pools that are due; free is the current free space. The item that has waited
// longest comes first. After the context ends, no measurement begins, and one that has begun goes on in the background.
func (d *disk) measure(ctx context.Context, free int64) {
	due := slices.DeleteFunc(d.disks.stock.measurable(d.all()), func(m measuring) bool { return !m.isDue(free) })
	slices.SortStableFunc(due, func(a, b measuring) int { return a.since().Compare(b.since()) })
	for _, m := range due {
		d.measureOne(ctx, m, free)
	}
}

// measurable returns all items in the pools that have to be measured.
func (s *stock) measurable(pools []*pool) (found []measuring) {
	for _, entry := range s.volumes.all() {
		if v := entry.item; v != nil && slices.Contains(pools, v.pool) {
			found = append(found, v.pool.measurable(entry.handle, v.thing())...)
		}
	}
	for _, entry := range s.snapshots.all() {
		if one := entry.item; one != nil && slices.Contains(pools, one.pool) {
			found = append(found, one.pool.measurable(entry.handle, one.thing())...)
		}
	}
	return found
}

// measurable returns the thing, if it has to be measured.
func (p *pool) measurable(handle string, t thing) []measuring {
	if bytes := p.storage.measures(t); bytes != nil {
		return []measuring{{t.measured, handle, t.path, bytes, p.ledger.free}}
	}
	return nil
}

// measureOne measures again if the first call only returned the outcome of an earlier measurement that was given up. It
// is no failure if a measurement goes on, or others delay it.
func (d *disk) measureOne(ctx context.Context, m measuring, free int64) {
	err := d.measureNow(ctx, m, free)
	if err == nil && m.isDue(free) {
		err = d.measureNow(ctx, m, free)
	}
	if err != nil && !backends.Is(err, backends.Busy) && ctx.Err() == nil {
		d.disks.log.Debug("it cannot be told how much is held: what was found counts", "of", m.handle, "error", err)
	}
}

// measureNow begins a measurement, or waits for one that was begun. Kinds: as background.Works.Do.
func (d *disk) measureNow(ctx context.Context, m measuring, free int64) error {
	_, err := d.measuring.Do(ctx, background.Work{Key: m.handle, Name: fmt.Sprintf("measuring %s", m.handle)},
		func(ctx context.Context) (struct{}, error) {
			began := time.Now()
			ctx, cancel := context.WithTimeout(ctx, measureLimit)
			defer cancel()
			found, err := m.take(ctx, free)
			ended := time.Now()
			rest := measureShare * ended.Sub(began)
			m.last.Store(&measurement{found, ended.Add(max(rest, measureAge)), ended.Add(rest)})
			return struct{}{}, err
		})
	return err
}

// take measures. After an error the result is the part that was counted. Bytes written and counted meanwhile were still
// free before. If they were removed later, they would count twice, so take keeps the smaller number of free bytes.
func (m measuring) take(ctx context.Context, before int64) (holding, error) {
	n, err := m.bytes(ctx, m.path)
	after, unknown := m.free()
	if unknown != nil {
		return holding{0, before}, errors.Join(err, unknown)
	}
	return holding{n, min(before, after)}, err
}

// endsOfMeasuring returns the functions that end the measuring on each disk.
func (ds *disks) endsOfMeasuring() (ends []func(context.Context) error) {
	for _, d := range ds.all() {
		ends = append(ends, d.measuring.Close)
	}
	return ends
}
