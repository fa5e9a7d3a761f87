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

// watch looks for trash and drafts that nobody removes, as after a restart, or after another controller has ended:
// sidecars do not tell who leads now. What lies there at two looks is not being removed by the one that put it there,
// or is a lot; then this process helps. What was buried, and is no trash, it puts back at once.
func (j *janitors) watch() {
	j.group.Go("the watch over the shares", func() {
		for wait := firstRetry; ; wait = min(2*wait, lookEvery) {
			j.look()
			select {
			case <-time.After(wait):
			case <-j.life.Done():
				return
			}
		}
	})
}

// look begins a look at what is in the trash and in staging of each share that is known, unless one is under way there.
// It returns what ends with them.
func (j *janitors) look() *sync.WaitGroup {
	looks := &sync.WaitGroup{}
	for _, p := range j.engine.known.sorted() {
		if !j.lookouts.begin(p) {
			continue
		}
		looks.Add(1)
		j.group.Go("a look at what is left on the share "+p.String(), func() {
			defer looks.Done()
			defer j.lookouts.end(p)
			j.lookAt(p)
		})
	}
	return looks
}

// lookAt has the janitor of a share look closer where something lay there before. After a look that fails that is what
// was there at the one before it.
func (j *janitors) lookAt(p place) {
	found, err := j.leftOn(p)
	if err != nil {
		j.engine.pool.Distrust(p.Address, err)
		j.engine.log.Debug("what is left on a share could not be looked at", "share", p.key(), "error",
			failure.OneLine(err))
		return
	}
	if again := j.lookouts.again(p, found.names); again || found.due {
		j.add(p.Address)
	}
}

// left is what is left on a share.
type left struct {
	names []string // the records of what is to be removed, and what is in staging
	due   bool     // that the janitor is to look closer, whatever was there before
}

// leftOn looks at what is left on a share. A record among the burials that is another's is put back: its janitor may be
// in the middle of a removal that takes hours. It is work in the background, and no call that must end soon: a server
// that has very much to list is not silent. It waits for a mount no longer than calls do, which wait behind it.
func (j *janitors) leftOn(p place) (left, error) {
	ctx, cancel := context.WithTimeout(j.life, probeTime)
	defer cancel()
	s, release, err := j.engine.pool.Hold(ctx, p.Address)
	if err != nil {
		return left{}, err
	}
	defer release()
	h, err := s.Home(false)
	if err != nil {
		return left{}, err
	}
	// The janitor says what is wrong with one that cannot be put back.
	moved, err := layIn(h, share.Burials)
	due := err != nil || len(moved) > 0 || !j.engine.laid.on(h)
	trash, err := h.Names(share.Trash, suffix)
	staged, failed := h.Names(share.Staging, "")
	for _, err := range []error{err, failed} {
		if err != nil && !errors.Is(err, share.ErrFlooded) { // Of so many there is a lot left.
			return left{}, err
		}
	}
	names := append(trash, staged...)
	return left{names, due || len(names) > mostLeft}, nil
}
