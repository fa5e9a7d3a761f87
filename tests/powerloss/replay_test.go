package powerloss

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
)

// openLimit limits any operation on a drive after a power loss.
const openLimit = 2 * time.Minute

// bench is a drive on which losses are replayed, one after the other.
type bench struct {
	drive *drive
	loop  *loop
	dir   string
}

// newBenches creates the given number of benches for drives of the size.
func newBenches(t *testing.T, count int, pages int) []*bench {
	t.Helper()
	drives, paths := serveDrives(t, count)
	var benches []*bench
	for i, d := range drives {
		d.load(make(image, pages), nil)
		benches = append(benches, &bench{drive: d, loop: attach(t, paths[i]), dir: t.TempDir()})
	}
	return benches
}

// loss is the result of a power loss.
type loss struct {
	cut       cut
	volumes   int // the number of volumes afterwards
	verdict   verdict
	unmounted error  // the reason if the filesystem could not be mounted at all
	kernel    string // the kernel's log about that
	tree      string // all files, if there was a violation
	inFlight  string
	elapsed   time.Duration
}

// replay mounts the drive after a power loss, opens the backend on it, and checks everything.
func (b *bench) replay(ctx context.Context, f filesystem, c cut, m image, must *belief) loss {
	start := time.Now()
	l := loss{cut: c, inFlight: must.describe()}
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	b.drive.load(m, nil)
	log := listen()
	defer log.close()
	if l.unmounted = errors.Join(b.loop.forget(), b.loop.mount(b.dir, f)); l.unmounted != nil {
		l.kernel = log.about(b.loop)
		return l
	}
	if err := b.inspect(ctx, &l, must); err != nil {
		l.verdict.violations = append(l.verdict.violations, err.Error())
	}
	if len(l.verdict.violations) > 0 && l.tree == "" {
		l.tree = tree(b.dir)
	}
	if err := unmount(b.dir); err != nil {
		l.verdict.violations = append(l.verdict.violations, "unmounting: "+err.Error())
	}
	l.elapsed = time.Since(start)
	return l
}

// inspect checks all conditions on the mounted drive.
func (b *bench) inspect(ctx context.Context, l *loss, must *belief) error {
	backend, err := openBackend(ctx, b.dir)
	if err != nil {
		return fmt.Errorf("the backend does not open: %w", err)
	}
	have, err := backend.observe(ctx, []string{groupName})
	for key := range have {
		if strings.HasPrefix(key, "volume/") {
			l.volumes++
		}
	}
	l.verdict = must.judge(have)
	errs := []error{err, backend.checkAccounts(ctx), backend.leftovers("staging", "trash", "quarantine")}
	if err := errors.Join(errs...); err != nil || len(l.verdict.violations) > 0 {
		l.tree = tree(b.dir) // Before everything is deleted.
	}
	errs = append(errs, backend.removeAll(ctx, []string{groupName}))
	errs = append(errs, backend.compareAccounts(ctx, map[string]int64{imagePool: imageCapacity,
		directoryPool: directoryCapacity}))
	errs = append(errs, backendtest.Close(ctx, backend.instance), backend.leftovers("staging", "trash", "quarantine",
		"volumes", "snapshots", "groups"))
	if list := backend.complaints.all(); len(list) > 0 {
		errs = append(errs, fmt.Errorf("the backend complains: %q", list))
	}
	return errors.Join(errs...)
}

// describe lists the operations in flight.
func (b *belief) describe() string {
	var names []string
	for _, o := range b.inFlight {
		names = append(names, o.name)
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// tree lists all files below a directory.
func tree(dir string) string {
	var text strings.Builder
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error { // Each failure is in the list.
		name, _ := filepath.Rel(dir, path)
		if err != nil {
			fmt.Fprintf(&text, "    %s: %v\n", name, err)
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			fmt.Fprintf(&text, "    %s: %v\n", name, err)
			return nil
		}
		fmt.Fprintf(&text, "    %s %8d %s\n", info.Mode(), info.Size(), name)
		return nil
	})
	return text.String()
}

// replayAll replays all cuts, on several benches concurrently.
func replayAll(t *testing.T, r *recording, cuts []cut, workers int, seed uint64) []loss {
	t.Helper()
	if r.filesystem.alone {
		workers = 1
	}
	var mu sync.Mutex
	var losses []loss
	var working sync.WaitGroup
	for i, b := range newBenches(t, workers, len(r.blank)) {
		working.Go(func() {
			restorer := newRestorer(r, seed)
			for n := i; n < len(cuts); n += workers {
				m, must := restorer.restore(cuts[n])
				l := b.replay(t.Context(), r.filesystem, cuts[n], m, must)
				mu.Lock()
				losses = append(losses, l)
				mu.Unlock()
			}
		})
	}
	working.Wait()
	slices.SortFunc(losses, func(a, b loss) int { return a.cut.after - b.cut.after })
	return losses
}
