package nfs

import (
	"context"
	"errors"
	"strings"
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
// or is a lot; then this process helps. What was buried, and is no trash, it puts back at once.
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
// closer where something lay there before. Of a share that cannot be looked at it is what was there before.
func (j *janitors) look(before map[string]bool) map[string]bool {
	var mu sync.Mutex
	now := map[string]bool{}
	var looks sync.WaitGroup
	for _, p := range j.engine.known.sorted() {
		looks.Go(func() {
			found, err := j.leftOn(p)
			if err != nil {
				j.engine.log.Debug("what is left on a share could not be looked at", "share", p.key(), "error",
					failure.OneLine(err))
				found.names = of(p, before)
			}
			mu.Lock()
			defer mu.Unlock()
			due := found.due
			for _, name := range found.names[:min(len(found.names), mostLeft)] {
				now[p.key()+" "+name] = true
				due = due || err == nil && before[p.key()+" "+name]
			}
			if due {
				j.add(p.Address)
			}
		})
	}
	looks.Wait()
	return now
}

// of are the names that were seen on the share at a place.
func of(p place, seen map[string]bool) (names []string) {
	for where := range seen {
		if name, there := strings.CutPrefix(where, p.key()+" "); there {
			names = append(names, name)
		}
	}
	return names
}

// left is what is left on a share.
type left struct {
	names []string // the records of what is to be removed, and what is in staging
	due   bool     // that the janitor is to look closer, whatever was there before
}

// leftOn looks at what is left on a share. A record among the burials that is another's is put back: its janitor may be
// in the middle of a removal that takes hours.
func (j *janitors) leftOn(p place) (left, error) {
	ctx, cancel := context.WithTimeout(j.life, probeTime)
	defer cancel()
	found := make(chan left, 1)
	err := j.engine.pool.With(ctx, p.Address, "looking for what is left", func(_ context.Context, s *share.Share) error {
		h, err := s.Home(false)
		if err != nil {
			return err
		}
		// The janitor says what is wrong with one that cannot be put back.
		due := j.layIn(h, share.Burials) != nil || !j.engine.laid.on(h)
		trash, err := h.Names(share.Trash, suffix)
		staged, failed := h.Names(share.Staging, "")
		for _, err := range []error{err, failed} {
			if err != nil && !errors.Is(err, share.ErrFlooded) { // Of so many there is a lot left.
				return err
			}
		}
		names := append(trash, staged...)
		found <- left{names, due || len(names) > mostLeft}
		return nil
	})
	if err != nil {
		return left{}, err
	}
	return <-found, nil
}
