package ebs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/history"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// create creates a volume, as package volume does.
func (s *storm) create(name string, random *rand.Rand) (handle string) {
	s.Helper()
	wanted := region.Spec(name)
	wanted.Fingerprint = "fingerprint of " + name
	s.call(history.Call{Op: history.Create, Name: name}, random,
		func(ctx context.Context, i *backends.Instance) (string, error) {
			v, err := i.Controller.Create(ctx, wanted)
			if backends.Is(err, backends.Exists) {
				if v, err = i.Controller.Find(ctx, wanted); backends.Is(err, backends.NotFound) {
					return "", backends.Errorf(backends.Busy, "it is gone again")
				}
			}
			if err != nil {
				return "", err
			}
			if v.Name != name || v.Fingerprint != wanted.Fingerprint || v.CapacityBytes != wanted.Capacity.RequiredBytes {
				s.Errorf("%s is made as %+v", name, v)
			}
			handle = v.Handle
			return handle, nil
		})
	return handle
}

// useVolumes creates volumes and uses them one after the other. Some names are reused.
func (s *storm) useVolumes(user int) {
	random := s.random(user)
	for round := 0; !s.calm.Load(); round++ {
		name := fmt.Sprint("volume-", user, "-", random.IntN(3))
		handle := s.create(name, random)
		if handle == "" {
			return
		}
		for range random.IntN(3) {
			s.attachAndDetach(handle, random)
		}
		if random.IntN(2) == 0 {
			s.grow(handle, random)
		}
		for n := range random.IntN(3) {
			s.snapshot(fmt.Sprint("snapshot-", user, "-", round, "-", n), handle, random)
		}
		s.delete(name, handle, random)
	}
}

func (s *storm) attachAndDetach(handle string, random *rand.Rand) {
	node := []string{region.NodeA, region.NodeB}[random.IntN(2)]
	wanted := region.Request(handle, node)
	s.call(history.Call{Op: history.Attach, Volume: handle, Node: node}, random,
		func(ctx context.Context, i *backends.Instance) (string, error) {
			_, err := i.Controller.(backends.Attacher).Attach(ctx, wanted)
			return "", s.strayed(ctx, i, handle, err)
		})
	<-time.After(time.Duration(random.Int64N(int64(2 * longest))))
	s.call(history.Call{Op: history.Detach, Volume: handle, Node: node}, random,
		func(ctx context.Context, i *backends.Instance) (string, error) {
			return "", i.Controller.(backends.Attacher).Detach(ctx, handle, node)
		})
}

// grow expands a volume while another caller modifies it.
func (s *storm) grow(handle string, random *rand.Rand) {
	const larger = 6 << 30
	var both sync.WaitGroup
	other := rand.New(rand.NewPCG(random.Uint64(), 0))
	both.Go(func() {
		throughput := int64(126 + other.IntN(600)) // the maximum for 3000 operations a second
		s.call(history.Call{Op: "modify", Volume: handle}, other,
			func(ctx context.Context, i *backends.Instance) (string, error) {
				return "", i.Controller.(backends.Modifier).Modify(ctx, handle, &ebs.Mutable{Throughput: &throughput})
			})
	})
	s.call(history.Call{Op: "expand", Volume: handle}, random,
		func(ctx context.Context, i *backends.Instance) (string, error) {
			grown, err := i.Controller.(backends.Expander).Expand(ctx, handle, backends.CapacityRange{RequiredBytes: larger})
			if err == nil && grown.CapacityBytes != larger {
				s.Errorf("%s has grown to %d bytes, want %d", handle, grown.CapacityBytes, larger)
			}
			return "", err
		})
	both.Wait()
}

func (s *storm) snapshot(name, volume string, random *rand.Rand) {
	var handle string
	s.call(history.Call{Op: "take snapshot", Name: name}, random,
		func(ctx context.Context, i *backends.Instance) (string, error) {
			wanted := backends.SnapshotSpec{Name: name, Volume: volume}
			n, err := i.Controller.(backends.Snapshotter).CreateSnapshot(ctx, wanted)
			if backends.Is(err, backends.Exists) {
				n, err = i.Controller.(backends.Snapshotter).FindSnapshot(ctx, wanted)
			}
			if err == nil {
				handle = n.Handle
			}
			return "", err
		})
	s.call(history.Call{Op: "delete snapshot", Name: name}, random,
		func(ctx context.Context, i *backends.Instance) (string, error) {
			return "", unlessGone(i.Controller.(backends.Snapshotter).DeleteSnapshot(ctx, handle))
		})
}

func (s *storm) delete(name, handle string, random *rand.Rand) {
	s.call(history.Call{Op: history.Delete, Name: name, Volume: handle}, random,
		func(ctx context.Context, i *backends.Instance) (string, error) {
			return "", s.strayed(ctx, i, handle, unlessGone(i.Controller.Delete(ctx, handle)))
		})
}

// strayed removes an attachment that is in the way. A request of a dead process may arrive after the next process has
// detached the volume. This cannot be distinguished from an attachment that a caller requested.
func (s *storm) strayed(ctx context.Context, i *backends.Instance, handle string, err error) error {
	if s.crashes == 0 || !backends.Is(err, backends.Exists) && !backends.Is(err, backends.InUse) {
		return err
	}
	_ = i.Controller.(backends.Attacher).Detach(ctx, handle, "") // The next call sees the result.
	return backends.Errorf(backends.Busy, "it was attached by a process that has died: %w", err)
}

func unlessGone(err error) error {
	if backends.Is(err, backends.NotFound) {
		return nil
	}
	return err
}

// contend attaches and detaches a volume that others use too.
func (s *storm) contend(handle string, rival int) {
	random := s.random(200 + rival)
	for !s.calm.Load() {
		c := history.Call{Op: history.Attach, Volume: handle, Node: []string{region.NodeA, region.NodeB}[random.IntN(2)],
			Contended: true}
		if random.IntN(2) == 0 {
			c.Op = history.Detach
		}
		err := s.once(c, limit(random), func(ctx context.Context, i *backends.Instance) (string, error) {
			if c.Op == history.Detach {
				return "", i.Controller.(backends.Attacher).Detach(ctx, handle, c.Node)
			}
			_, err := i.Controller.(backends.Attacher).Attach(ctx, region.Request(handle, c.Node))
			return "", err
		})
		if err != nil && !undecided(err) && !backends.Is(err, backends.InUse) {
			s.Error(errors.Join(errors.New("contending"), err))
		}
	}
}
