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
	// measureAge is how old a measurement may be, and measureShare how much of the time measuring may take: one in so
	// many.
	measureAge   = time.Minute
	measureShare = 20
	// measureLimit ends a measurement: a pod can make a tree that takes hours, and others wait for their turn.
	measureLimit = 5 * time.Minute
	// mostMeasurements is how many are made at the same time on a filesystem.
	mostMeasurements = 2
)

// measured is how many bytes of a volume or snapshot are its own, where the filesystem does not say that at once: it
// is found out by looking at each of its files or extents. Until then it is nothing.
type measured struct{ last atomic.Pointer[measurement] }

// measurement is one of them. Its times are by the clock that nobody sets.
type measurement struct {
	holding
	old  time.Time // when it is to be made again
	soon time.Time // when it may be, if there is reason to
}

// held is what the last measurement has found.
func (m *measured) held() holding {
	if last := m.last.Load(); last != nil {
		return last.holding
	}
	return holding{free: math.MaxInt64}
}

// isDue reports whether it is to be found out, again or for the first time. Where more is free than was then, it may
// have less now.
func (m *measured) isDue(free int64) bool {
	last, now := m.last.Load(), time.Now()
	return last == nil || !now.Before(last.old) || free > last.free && !now.Before(last.soon)
}

// measuring is something that is to be measured.
type measuring struct {
	*measured
	handle string
	path   string
	bytes  func(context.Context, string) (int64, error)
	free   func() (int64, error) // of its filesystem
}

// since is when it was to be measured at the latest.
func (m measuring) since() time.Time {
	if last := m.last.Load(); last != nil {
		return last.old
	}
	return time.Time{}
}

// measure finds out what is to be found out about the pools, which have so many bytes free, as far as it gets to that
// before the context ends: the rest goes on in the background. What waits for longest comes first.
func (d *disk) measure(ctx context.Context, free int64) {
	due := slices.DeleteFunc(d.disks.stock.measurable(d.all()), func(m measuring) bool { return !m.isDue(free) })
	slices.SortStableFunc(due, func(a, b measuring) int { return a.since().Compare(b.since()) })
	for _, m := range due {
		d.measureOne(ctx, m, free)
	}
}

// measurable is all in the pools that does not say at once what it holds.
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

// measurable is the thing, if there is something to measure.
func (p *pool) measurable(handle string, t thing) []measuring {
	if bytes := p.storage.measures(t); bytes != nil {
		return []measuring{{t.measured, handle, t.path, bytes, p.ledger.free}}
	}
	return nil
}

// measureOne measures once more where an earlier measurement has ended since its call gave it up: to hear of that
// begins nothing.
func (d *disk) measureOne(ctx context.Context, m measuring, free int64) {
	err := d.measureNow(ctx, m, free)
	if err == nil && m.isDue(free) {
		err = d.measureNow(ctx, m, free)
	}
	if err != nil && !backends.Is(err, backends.Busy) && !backends.Is(err, backends.Unavailable) && ctx.Err() == nil {
		d.disks.log.Debug("it cannot be told how much is held: what was found counts", "of", m.handle, "error", err)
	}
}

// measureNow begins to measure, or waits for what was begun. Kinds: as background.Works.Do.
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

// take measures. After an error it is so much at least as was counted. What is written meanwhile, and counted, is not
// among the free bytes of before: were it removed later, it would count twice, unless the smaller number of free bytes
// is kept.
func (m measuring) take(ctx context.Context, before int64) (holding, error) {
	n, err := m.bytes(ctx, m.path)
	after, unknown := m.free()
	if unknown != nil {
		return holding{0, before}, errors.Join(err, unknown)
	}
	return holding{n, min(before, after)}, err
}

// endsOfMeasuring are what ends the measuring on each disk.
func (ds *disks) endsOfMeasuring() (ends []func(context.Context) error) {
	for _, d := range ds.all() {
		ends = append(ends, d.measuring.Close)
	}
	return ends
}
