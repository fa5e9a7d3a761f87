package powerloss

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
)

// recording holds the drive's requests while the script ran, and its content before.
type recording struct {
	filesystem filesystem
	manner     manner
	blank      image   // the drive's content before
	belief     *belief // the expected state before
	entries    []entry
}

// manner is the way in which the script runs.
type manner struct {
	name string
	// restless runs all tracks concurrently while the filesystem is synced at random moments, so that intermediate states
	// reach the drive without a sync of the backend.
	restless bool
	seed     uint64
	lie      lie // planted: syncs without effect
}

// record runs the script on a new filesystem.
func record(t *testing.T, f filesystem, m manner) *recording {
	t.Helper()
	drives, paths := serveDrives(t, 1)
	r := &recording{filesystem: f, manner: m, blank: f.format(t), belief: newBelief()}
	j := &journal{}
	drives[0].load(slices.Clone(r.blank), j)
	l := attach(t, paths[0])
	dir := t.TempDir()
	must(t, l.mount(dir, f))
	err := perform(t.Context(), dir, j, m)
	must(t, errors.Join(err, unmount(dir)))
	r.entries = j.all()
	return r
}

// perform opens the backend, runs the script and closes it.
func perform(ctx context.Context, dir string, j *journal, m manner) error {
	b, err := openBackend(ctx, dir)
	if err != nil {
		return err
	}
	s := &script{backend: b, journal: j, now: world{}, handles: map[string]string{}}
	if m.restless {
		err = s.runRestless(ctx, dir, m.seed)
	} else {
		err = m.lie.during(func() error { return errors.Join(s.imageTrack().run(ctx), s.directoryTrack().run(ctx)) })
	}
	return errors.Join(err, backendtest.Close(ctx, b.instance))
}

// runRestless runs all tracks concurrently.
func (s *script) runRestless(ctx context.Context, dir string, seed uint64) error {
	stop := make(chan struct{})
	var syncing, working sync.WaitGroup
	syncing.Go(func() { syncAtRandom(dir, seed, stop) })
	tracks := []track{s.imageTrack(), s.directoryTrack(), s.churnTrack()}
	errs := make([]error, len(tracks))
	for i, t := range tracks {
		working.Go(func() { errs[i] = t.run(ctx) })
	}
	working.Wait()
	close(stop)
	syncing.Wait()
	return errors.Join(errs...)
}

// syncAtRandom syncs the filesystem every few milliseconds.
func syncAtRandom(dir string, seed uint64, stop <-chan struct{}) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // The tracks will fail too.
	}
	defer func() { _ = unix.Close(fd) }() // It was not written to.
	rng := rand.New(rand.NewPCG(seed, 0))
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(rng.IntN(6000)) * time.Microsecond):
			_ = unix.Syncfs(fd) // It only adds requests to the drive.
		}
	}
}
