package disks

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// gather is how long events are collected before a look: a disk with partitions causes many events.
const gather = 100 * time.Millisecond

// afterEvent returns the pauses before further looks. The kernel reports a disk before udev creates its links and opens
// the disk, as other listeners may too, and it reports neither. So at first a rule may find nothing, or the disk is in
// use.
func afterEvent() []time.Duration { return []time.Duration{time.Second, 2 * time.Second} }

// scan looks for volumes on request, again some time later, and at intervals.
func (e *Engine) scan(ctx context.Context, look func(context.Context)) error {
	tick := time.NewTicker(e.options.Rescan)
	defer tick.Stop()
	var again <-chan time.Time
	var pauses []time.Duration
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-again:
			again, pauses = next(pauses)
		case <-e.scans:
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(gather):
			}
			again, pauses = next(afterEvent())
		}
		look(ctx)
	}
}

// next starts the first pause, if any, and returns the rest.
func next(pauses []time.Duration) (<-chan time.Time, []time.Duration) {
	if len(pauses) == 0 {
		return nil, nil
	}
	return time.After(pauses[0]), pauses[1:]
}

// find looks for volumes. When it begins, it also removes the links that no longer lead to their volume, beside the
// look: that waits for disks that do not answer, and a disk that was replaced has left its device node to another. A
// disk that is replaced later is left to the next look.
func (e *Engine) find(ctx context.Context, remember discovery.Remember) ([]report.Volume, error) {
	unlinked := make(chan error, 1)
	go func() { unlinked <- e.unlinkOthers(ctx) }()
	found, err := e.options.Config.Find(ctx, remember)
	if left := <-unlinked; err != nil { // Otherwise the links are all written next.
		err = errors.Join(err, left)
	}
	return found, err
}

// scanOnce looks once. If the look fails as a whole, the earlier result stays, except the links of disks that are gone:
// another disk may have got the node of one.
func (e *Engine) scanOnce(ctx context.Context) {
	e.mu.Lock()
	e.looks++
	look := e.looks
	e.mu.Unlock()
	found, err := e.find(ctx, func(name string) discovery.History {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.history(name)
	})
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		if err = e.link(ctx, found); err != nil { // A link that could not be changed may be stale.
			err = errors.Join(err, e.unlinkOthers(ctx))
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	problem := ""
	if len(found) > report.Most {
		problem = fmt.Sprintf("the configuration selects %d volumes: the first %d are served", len(found), report.Most)
		found = found[:report.Most]
	}
	isNews := e.isAwaited(look)
	for i := range found {
		if err == nil { // Otherwise its link may be missing.
			isNews = e.prove(&found[i], look) || isNews
		}
	}
	if err != nil {
		e.options.Log.Error("looking for disks failed", "error", err)
		problem, found, look = err.Error(), e.found, e.foundBy
	}
	e.foundBy = look
	if isNews || problem != e.problem || !reflect.DeepEqual(found, e.found) {
		e.problem, e.found = problem, found
		e.change()
	}
}
