package adversary

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// ledger holds the acknowledged items that must exist.
type ledger struct {
	volumes   map[string]*volume
	snapshots map[string]*snapshot
}

func newLedger() ledger {
	return ledger{volumes: map[string]*volume{}, snapshots: map[string]*snapshot{}}
}

// list enumerates while items come and go: each of this actor's own must be listed once, unless it was being deleted.
func (a *actor) list() {
	a.own.Lock()
	volumes, snapshots := map[string]*atomic.Bool{}, map[string]*atomic.Bool{}
	for _, v := range a.volumes {
		if v != nil {
			volumes[v.id] = &v.leaving
		}
	}
	for _, s := range a.snapshots {
		if s != nil {
			snapshots[s.id] = &s.leaving
		}
	}
	a.own.Unlock()
	a.enumerated("volumes", volumes, a.allVolumes())
	a.enumerated("snapshots", snapshots, a.allSnapshots())
	for class := range a.setup.Classes {
		_, _ = a.room(&volume{class: class})
	}
}

// enumerated checks that a list has the wanted items, and no duplicates. Nil is a list that could not be obtained.
func (a *actor) enumerated(what string, want map[string]*atomic.Bool, found []string) {
	slices.Sort(found)
	if twice := len(found) - len(slices.Compact(slices.Clone(found))); twice > 0 {
		a.blame("one volume for a name: the list of %s names %d twice: %q", what, twice, found)
	}
	for id, leaving := range want {
		if found != nil && !slices.Contains(found, id) && !leaving.Load() && !a.disturbed.Load() {
			a.blame("acknowledged means there: the list of %s lacks %s", what, id)
		}
	}
}

// allVolumes returns the IDs of the listed volumes, or nil if the list could not be obtained.
func (w *world) allVolumes() []string {
	return w.pages("ListVolumes", func(ctx context.Context, token string) (ids []string, next string, err error) {
		response, err := w.controls().ListVolumes(ctx, &csi.ListVolumesRequest{MaxEntries: 5, StartingToken: token})
		for _, entry := range response.GetEntries() {
			ids = append(ids, entry.GetVolume().GetVolumeId())
		}
		return ids, response.GetNextToken(), err
	})
}

// allSnapshots returns the IDs of the listed snapshots.
func (w *world) allSnapshots() []string {
	return w.pages("ListSnapshots", func(ctx context.Context, token string) (ids []string, next string, err error) {
		response, err := w.controls().ListSnapshots(ctx, &csi.ListSnapshotsRequest{MaxEntries: 5, StartingToken: token})
		for _, entry := range response.GetEntries() {
			ids = append(ids, entry.GetSnapshot().GetSnapshotId())
		}
		return ids, response.GetNextToken(), err
	})
}

// restarts is how often a list begins again, because items come and go, before it counts as not obtained.
const restarts = 20

// pages returns all of a list, which begins again where the driver says so; nil if it could not be obtained. Every
// backend here can list: an answer that it cannot is retried like any other failure.
func (w *world) pages(name string, page func(ctx context.Context, token string) ([]string, string, error)) []string {
	all, token := []string{}, ""
	for begun := 0; ; {
		var ids []string
		var next string
		r := request{name: name + " from " + token, company: true}
		if token != "" {
			r.refusals = append(r.refusals, codes.Aborted) // begin again
		}
		r.send = func(ctx context.Context) (_ string, err error) {
			ids, next, err = page(ctx, token)
			return "", err
		}
		switch err := w.ask(r); {
		case errors.Is(err, errRefused) && begun < restarts:
			begun++
			all, token = []string{}, ""
			continue
		case err != nil:
			return nil
		}
		if all, token = append(all, ids...), next; token == "" {
			return all
		}
	}
}

// room returns the driver's answer for the size of the largest possible volume of that class.
func (w *world) room(v *volume) (bytes int64, err error) {
	r := request{name: fmt.Sprintf("GetCapacity class %d", v.class), company: true,
		refusals: []codes.Code{codes.Unimplemented}}
	r.send = func(ctx context.Context) (string, error) {
		response, err := w.controls().GetCapacity(ctx, &csi.GetCapacityRequest{
			Parameters: w.setup.Classes[v.class].Parameters, VolumeCapabilities: []*csi.VolumeCapability{capability(v.raw)},
		})
		bytes = response.GetAvailableCapacity()
		if most := response.GetMaximumVolumeSize(); most != nil {
			bytes = most.GetValue()
		}
		return "", err
	}
	err = w.ask(r)
	return bytes, err
}
