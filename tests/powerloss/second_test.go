package powerloss

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
)

// TestSecondLoss cuts the power again while the filesystem and the backend recover from a first loss. A state of an
// operation in flight that was already observed must not change.
func TestSecondLoss(t *testing.T) {
	demand(t)
	boot := newBoots(t)
	s := seedOf(t)
	var table report
	t.Cleanup(func() { t.Log("\n" + table.String()) })
	for _, f := range chosen() {
		t.Run(f.name, func(t *testing.T) {
			boot("before")
			r := record(t, f, manner{name: "restless", restless: true, seed: s})
			boot("after")
			recordings := recoveries(t, r, s)
			boot("after that")
			for _, mode := range []model{strict, cached} {
				var losses []loss
				for _, second := range recordings {
					losses = append(losses, replayAll(t, second, chooseSome(second, mode, s), *workers, s)...)
				}
				sum := &recording{filesystem: f, manner: manner{name: "recovery"}}
				for _, second := range recordings {
					sum.entries = append(sum.entries, second.entries...)
				}
				table.add(sum, mode, losses)
				complain(t, sum, losses)
			}
		})
	}
}

// firstLosses is the number of interrupted recoveries in the short form, and secondLosses the number of interruptions
// of each.
const (
	firstLosses  = 5
	secondLosses = 6
)

// recoveries records recoveries from losses with operations in flight.
func recoveries(t *testing.T, r *recording, s uint64) []*recording {
	t.Helper()
	b := newBenches(t, 1, len(r.blank))[0]
	count := firstLosses
	if *full {
		count *= 8
	}
	cuts := allCuts(r.entries, cached, *seeds)
	rng := rand.New(rand.NewPCG(s, 2))
	rng.Shuffle(len(cuts), func(i, j int) { cuts[i], cuts[j] = cuts[j], cuts[i] })
	var recordings []*recording
	for _, c := range cuts {
		m, believed := newRestorer(r, s).restore(c)
		if len(believed.inFlight) == 0 {
			continue
		}
		second, err := b.recordRecovery(t.Context(), r, c, m, believed)
		if err != nil {
			t.Fatalf("recovering from the loss %s: %v", c, err)
		}
		if recordings = append(recordings, second); len(recordings) == count {
			break
		}
	}
	return recordings
}

// recordRecovery records the drive's requests from the mount after a loss until the backend is closed again.
func (b *bench) recordRecovery(ctx context.Context, r *recording, c cut, m image, must *belief) (*recording, error) {
	j := &journal{}
	b.drive.load(slices.Clone(m), j)
	if err := errors.Join(b.loop.forget(), b.loop.mount(b.dir, r.filesystem)); err != nil {
		return nil, err
	}
	err := b.look(ctx, j, must)
	if err := errors.Join(err, unmount(b.dir)); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("recovery from %s", c)
	return &recording{filesystem: r.filesystem, manner: manner{name: name}, blank: m, belief: must.clone(),
		entries: j.all()}, nil
}

// look opens the backend and records the states of the operations in flight.
func (b *bench) look(ctx context.Context, j *journal, must *belief) error {
	backend, err := openBackend(ctx, b.dir)
	if err != nil {
		return err
	}
	have, err := backend.observe(ctx, []string{groupName})
	o := &operation{name: "look", change: map[string]*state{}}
	for _, inFlight := range must.inFlight {
		for key := range inFlight.change {
			if s, ok := have[key]; ok {
				o.change[key] = &s
			} else {
				o.change[key] = nil
			}
		}
	}
	j.add(entry{kind: looked, op: o})
	return errors.Join(err, backendtest.Close(ctx, backend.instance))
}

// chooseSome selects the cuts of a recovery to replay.
func chooseSome(r *recording, m model, s uint64) []cut {
	cuts := allCuts(r.entries, m, *seeds)
	if *full {
		return cuts
	}
	return sample(cuts, r.entries, secondLosses, rand.New(rand.NewPCG(s, uint64(len(cuts)))))
}
