package main

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// shelf simulates the process that opens the disks of a node. It has no disks: a wipe is done as soon as it is
// requested.
type shelf struct {
	node  string
	disks int

	mu       sync.Mutex
	revision int
	changed  chan struct{}
	wanted   report.Wanted
	dirty    map[string]bool
	offers   map[string]bool // known ids
	done     map[string]bool // deletions
}

func newShelf(node string, disks int) *shelf {
	return &shelf{node: node, disks: disks, changed: make(chan struct{}), dirty: map[string]bool{},
		offers: map[string]bool{}, done: map[string]bool{}}
}

// State returns the state once its revision differs from after.
func (s *shelf) State(ctx context.Context, after string) (report.State, error) {
	for {
		s.mu.Lock()
		state, changed := s.state(), s.changed
		s.mu.Unlock()
		if state.Revision != after {
			return state, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state, ctx.Err()
		}
	}
}

func (s *shelf) state() report.State {
	state := report.State{Revision: fmt.Sprint(s.revision)}
	offered := map[string]bool{}
	for _, o := range s.wanted.Offers {
		offered[o.Volume] = true
	}
	for i := range s.disks {
		v := report.Volume{
			Name: fmt.Sprintf("disk-%s-%d", s.node, i), Device: fmt.Sprintf("/dev/nvme%dn1", i),
			Identity:  fmt.Sprintf("wwid=%s-%d", s.node, i),
			SizeBytes: 1 << 40, Mode: report.Block, State: report.Available,
		}
		v.Path = "/var/lib/stowage/disks/links/" + v.Name
		switch {
		case offered[v.Name]:
			v.State = report.Offered
		case s.dirty[v.Name]:
			v.State = report.Dirty
		}
		state.Volumes = append(state.Volumes, v)
	}
	for _, d := range s.wanted.Deletions {
		state.Deletions = append(state.Deletions, report.Deletion{ID: d.ID, Volume: d.Volume, State: report.Complete,
			Progress: 100})
	}
	return state
}

// Want records the offers, and wipes the disks of the deletions.
func (s *shelf) Want(_ context.Context, w report.Wanted) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := maps.Clone(s.done)
	for _, o := range w.Offers {
		s.dirty[o.Volume] = s.dirty[o.Volume] || !s.offers[o.ID]
		s.offers[o.ID] = true
	}
	for _, d := range w.Deletions {
		if !s.done[d.ID] {
			s.done[d.ID], s.dirty[d.Volume] = true, false
		}
	}
	if len(w.Offers) == len(s.wanted.Offers) && len(w.Deletions) == len(s.wanted.Deletions) && len(before) == len(s.done) {
		return nil
	}
	s.wanted = w
	s.revision++
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}
