package nfs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// lookEvery is how often the shares that are known are looked at for trash and drafts that somebody has left; at the
// start it is more often.
const lookEvery = time.Minute

// mostLeft is how many names of a share are remembered from one look to the next. Where there are more, this
// process helps at once.
const mostLeft = 10_000

// watch looks for trash and drafts that nobody removes, as after a restart, or after another controller has ended:
// sidecars do not tell who leads now. What lies there at two looks is not being removed by the one that put it there,
// or is a lot; then this process helps.
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

// look returns what is in the trash and in staging of all shares that are known, and has the janitor of a share look
// closer where something lay there before.
func (j *janitors) look(before map[string]bool) map[string]bool {
	var mu sync.Mutex
	now := map[string]bool{}
	var looks sync.WaitGroup
	for _, p := range j.engine.known.sorted() {
		looks.Go(func() {
			names, err := j.leftOn(p)
			if err != nil {
				j.engine.log.Debug("what is left on a share could not be looked at", "share", p.key(), "error",
					failure.OneLine(err))
			}
			mu.Lock()
			defer mu.Unlock()
			left := len(names) > mostLeft
			for _, name := range names[:min(len(names), mostLeft)] {
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

// leftOn lists the records of what is to be removed from a share, and what is in staging.
func (j *janitors) leftOn(p place) ([]string, error) {
	ctx, cancel := context.WithTimeout(j.life, probeTime)
	defer cancel()
	found := make(chan []string, 1)
	err := j.engine.pool.With(ctx, p.Address, "looking for what is left", func(_ context.Context, s *share.Share) error {
		h, err := s.Home(false)
		if err != nil {
			return err
		}
		trash, err := h.Names(share.Trash, suffix)
		staged, failed := h.Names(share.Staging, "")
		for _, err := range []error{err, failed} {
			if err != nil && !errors.Is(err, share.ErrFlooded) { // Of so many there is a lot left.
				return err
			}
		}
		found <- append(trash, staged...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return <-found, nil
}
