package nfs

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/tree"
)

const (
	// firstRetry is how long a janitor waits after a failure, and after each further one twice as long, up to lastRetry.
	firstRetry, lastRetry = time.Second, time.Minute
	// closeGrace is how long the end of the process waits for the work in the background.
	closeGrace = 5 * time.Second
	// forgottenAfter is the age of a draft that nobody has a record of, after which it is removed.
	forgottenAfter = time.Hour
)

// janitors remove what is in the trash of the shares, in the background: one goroutine for each share that has some.
// What they do not finish, they or those of another process do later: the trash itself says what there is to do.
type janitors struct {
	engine *engine
	life   context.Context // of the work in the background, which is no request's
	stop   context.CancelFunc
	group  sync.WaitGroup

	mu     sync.Mutex
	known  map[string]bool      // shares that were looked at since the start
	swept  map[string]time.Time // when forgotten drafts were last looked for
	active map[string]bool      // shares with a goroutine; true when there is more to do since it began its round
	closed bool
}

func newJanitors(e *engine) *janitors {
	life, stop := context.WithCancel(context.Background())
	return &janitors{engine: e, life: life, stop: stop, known: map[string]bool{}, swept: map[string]time.Time{}, active: map[string]bool{}}
}

// wake has a share looked at, if that was not done since the start: for what an earlier process left.
func (j *janitors) wake(address export.Address) {
	j.mu.Lock()
	first := !j.known[address.String()]
	j.mu.Unlock()
	if first {
		j.add(address)
	}
}

// add has the trash of a share removed.
func (j *janitors) add(address export.Address) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	name := address.String()
	j.known[name] = true
	if _, runs := j.active[name]; runs {
		j.active[name] = true
		return
	}
	j.active[name] = false
	j.group.Go(func() { j.work(address) })
}

// work makes rounds until one has found all done.
func (j *janitors) work(address export.Address) {
	wait := firstRetry
	for {
		err := j.round(address)
		if j.engine.pool.Distrust(address, err); errors.Is(err, unix.ESTALE) {
			err = j.round(address)
		}
		if err != nil && j.life.Err() == nil {
			j.engine.log.Warn("trash could not be removed: it is tried again", "share", address.String(), "after", wait, "error", err)
			select {
			case <-time.After(wait):
				wait = min(2*wait, lastRetry)
				continue
			case <-j.life.Done():
			}
		}
		wait = firstRetry
		if j.done(address.String()) {
			return
		}
	}
}

// done tells whether the goroutine may end, and notes that it does.
func (j *janitors) done(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.active[name] && j.life.Err() == nil {
		j.active[name] = false
		return false
	}
	delete(j.active, name)
	return true
}

// round removes all that is in the trash of a share.
func (j *janitors) round(address export.Address) error {
	s, release, err := j.engine.pool.HoldBriefly(j.life, address)
	if err != nil {
		return err
	}
	defer release()
	h, err := s.Home(false)
	if err != nil {
		return err
	}
	names, err := h.Names(share.Trash, "")
	if err != nil {
		return err
	}
	pieces := map[string][]string{} // A deep tree is removed in pieces, beside the first: key.1, key.2 and so on.
	for _, name := range names {
		key, _, _ := strings.Cut(name, ".")
		pieces[key] = append(pieces[key], name)
	}
	for key, names := range pieces {
		if err := j.life.Err(); err != nil {
			return err
		}
		if failed := j.empty(s, h, key, names); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	if j.sweepDue(address.String()) {
		err = errors.Join(err, j.forgotten(s, h))
	}
	return err
}

// sweepDue tells whether it is time to look for forgotten drafts, which takes reading every record of what is being made.
func (j *janitors) sweepDue(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if time.Since(j.swept[name]) < forgottenAfter/4 {
		return false
	}
	j.swept[name] = time.Now()
	return true
}

// empty removes one thing that is in the trash, and last the record that says so.
func (j *janitors) empty(s *share.Share, h *share.Home, key string, pieces []string) error {
	if !slices.Contains(pieces, key+suffix) {
		return nil // Nobody has said that this is to be removed.
	}
	r, err := read(h, share.Trash, key+suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Another controller's janitor was faster.
	}
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := j.engine.dispose(s, h, r); err != nil {
		return err
	}
	if !slices.Contains(pieces, key) {
		pieces = append(pieces, key) // dispose has just moved it there
	}
	for _, name := range pieces {
		if name == key+suffix {
			continue
		}
		if err := tree.Remove(j.life, path.Join(s.Path(), share.At(share.Trash, name))); err != nil {
			return err
		}
	}
	for _, name := range []string{key, key + linksSuffix} {
		if err := tree.Remove(j.life, path.Join(s.Path(), share.At(share.Staging, name))); err != nil {
			return err
		}
	}
	if took := time.Since(begin); took > time.Second {
		j.engine.log.Info("removed what was deleted", "share", s.Address.String(), "directory", r.SubDir, "took", took)
	}
	if r.Kind == volumeKind && r.OnDelete == retainData {
		return h.Move(share.Trash, key+suffix, share.Retained, key+suffix)
	}
	return h.Remove(share.Trash, key+suffix)
}

// forgotten removes old drafts that no record speaks of: a process ended between making one and its record.
func (j *janitors) forgotten(s *share.Share, h *share.Home) error {
	names, err := h.Names(share.Staging, "")
	if err != nil || len(names) == 0 {
		return err
	}
	begun, err := h.Names(share.Making, suffix)
	if err != nil {
		return err
	}
	spoken := map[string]bool{}
	for _, name := range begun {
		if r, err := read(h, share.Making, name+suffix); err == nil {
			spoken[r.key()] = true
		}
	}
	for _, name := range names {
		info, err := s.Files().Lstat(share.At(share.Staging, name))
		if err != nil || spoken[strings.TrimSuffix(name, linksSuffix)] || time.Since(info.ModTime()) < forgottenAfter {
			continue
		}
		if err := tree.Remove(j.life, path.Join(s.Path(), share.At(share.Staging, name))); err != nil {
			return err
		}
	}
	return nil
}

// close ends the work, and waits a little for it: what hangs in the kernel ends with the process.
func (j *janitors) close() {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.stop()
	waitFor(&j.group, closeGrace)
}

// waitFor waits for a group, but not for ever.
func waitFor(group *sync.WaitGroup, limit time.Duration) {
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(limit):
	}
}
