package nfs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// lookEvery is the interval between looks for trash and drafts on the known shares; at the start it is shorter.
const lookEvery = time.Minute

// watch looks for trash and drafts that no process removes, for example after a restart, or after another controller
// has ended, because sidecars do not say which one leads. If an entry is there at two looks, the process that left it
// is not removing it, or there is a lot of it; then this process helps. Buried records that are no trash are put back
// at once.
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

// look begins a look at the trash and the staging folder of each known share, unless one is under way there. The
// returned group ends with these looks.
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

// lookAt makes the janitor of a share look closer if an entry was there before. A failed look does not change the
// remembered entries.
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

// left describes the remains on a share.
type left struct {
	names []string // the records of the trash, and the entries of staging
	due   bool     // whether the janitor must look closer in any case
}

// leftOn looks for remains on a share. It puts back a record among the burials that is another item's, because the
// janitor may be in the middle of a removal that takes hours. It is work in the background without a deadline: a server
// with a long list is not dead. It waits for a mount no longer than calls do, which wait behind it.
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
	// The janitor reports records that cannot be put back.
	moved, err := layIn(h, share.Burials)
	due := err != nil || len(moved) > 0 || !j.engine.laid.on(h)
	trash, err := h.Names(share.Trash, suffix)
	staged, failed := h.Names(share.Staging, "")
	for _, err := range []error{err, failed} {
		if err != nil && !errors.Is(err, share.ErrFlooded) { // So many names are a lot of remains.
			return left{}, err
		}
	}
	names := append(trash, staged...)
	return left{names, due || len(names) > mostLeft}, nil
}
