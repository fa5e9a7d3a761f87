package nfs

import (
	"context"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// lookEvery is how often the shares that are known are looked at for trash that somebody has left; at the start it is more often.
const lookEvery = time.Minute

// watch looks for trash that nobody removes, as after a restart, or after another controller has ended: sidecars do not tell who
// leads now. What lies there at two looks is not being removed by the one that put it there, or is a lot; then this
// process helps.
func (j *janitors) watch() {
	j.group.Go(func() {
		lying := map[string]bool{}
		for wait := firstRetry; ; wait = min(2*wait, lookEvery) {
			lying = j.look(lying)
			select {
			case <-time.After(wait):
			case <-j.life.Done():
				return
			}
		}
	})
}

// look returns what is in the trash of all shares that are known, and has that of a share removed where something lay there before.
func (j *janitors) look(before map[string]bool) map[string]bool {
	var mu sync.Mutex
	now := map[string]bool{}
	var looks sync.WaitGroup
	for _, p := range j.engine.known.sorted() {
		looks.Go(func() {
			names, err := j.trashOf(p)
			if err != nil {
				j.engine.log.Debug("the trash of a share could not be looked at", "share", p.key(), "error", oneLine{err})
			}
			mu.Lock()
			defer mu.Unlock()
			left := false
			for _, name := range names {
				now[p.key()+" "+name] = true
				left = left || before[p.key()+" "+name]
			}
			if left {
				j.add(p.Address)
			}
		})
	}
	looks.Wait()
	return now
}

// trashOf lists the records of what is to be removed from a share.
func (j *janitors) trashOf(p place) ([]string, error) {
	ctx, cancel := context.WithTimeout(j.life, probeTime)
	defer cancel()
	found := make(chan []string, 1)
	err := j.engine.pool.With(ctx, p.Address, "looking for trash", func(_ context.Context, s *share.Share) error {
		h, err := s.Home(false)
		if err != nil {
			return err
		}
		names, err := h.Names(share.Trash, suffix)
		if err == nil {
			found <- names
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-found, nil
}
