package ownership

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// witness records the calls of an observer, and calls look on each progress.
type witness struct {
	began, ended int
	progress     []Result
	err          error
	look         func()
}

func (w *witness) Began() { w.began++ }

func (w *witness) Progressed(soFar Result, _ time.Duration) {
	w.progress = append(w.progress, soFar)
	if w.look != nil {
		w.look()
	}
}

func (w *witness) Ended(_ time.Duration, err error) { w.ended, w.err = w.ended+1, err }

func TestObserver(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	populate(t, root, 100, 50)
	seen := &witness{}
	request := Request{Path: root, GID: group, Policy: OnRootMismatch, Observer: seen, Every: time.Millisecond}
	result := apply(t, request)
	if seen.began != 1 || seen.ended != 1 || seen.err != nil || len(seen.progress) == 0 ||
		seen.progress[len(seen.progress)-1] != result {
		t.Errorf("told of %d begun, %d ended (%v) and %d times of progress; the last is to be %+v", seen.began, seen.ended,
			seen.err, len(seen.progress), result)
	}
	for i, p := range seen.progress[1:] {
		if last := seen.progress[i]; p.Entries < last.Entries || p.Changed < last.Changed || p.Entries < p.Changed+p.Denied {
			t.Errorf("after %+v came %+v", last, p)
		}
	}
	if apply(t, request); seen.began != 1 || seen.ended != 1 {
		t.Error("told of a walk that was not made")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request.Policy = Always
	if _, err := Apply(ctx, request); err == nil || !errors.Is(seen.err, context.Canceled) || seen.ended != 2 {
		t.Errorf("a walk that was cut short was told of as %v", seen.err)
	}
}

// An observer gets the progress of a walk at the set interval, and once more at the end.
func TestObserverHearsNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &witness{}
		h := (&walker{}).watch(seen, time.Second)
		<-time.After(3500 * time.Millisecond)
		h.end(nil)
		if len(seen.progress) != 4 || seen.ended != 1 {
			t.Errorf("told %d times of progress and %d times of the end, want 4 and 1", len(seen.progress), seen.ended)
		}
	})
}

// bigDirectory is the size of a directory whose names together take far more memory than a walk may.
const bigDirectory = 100_000

// The names of such a directory take 16 bytes each for their headers, and more for themselves. The walk must get by
// with those of a few batches.
func TestMemoryIsBounded(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	for i := range bigDirectory {
		must(t, unix.Mknod(filepath.Join(root, longName(i)), unix.S_IFREG|0o600, 0))
	}
	memoryIsBounded(t, root, bigDirectory+1, 0)
}

// A directory that lies too deep to be held open may have as many directories in it.
func TestMemoryIsBoundedDeepDown(t *testing.T) {
	needRoot(t)
	const depth, workers = 20, 32
	root := t.TempDir()
	deep := filepath.Join(root, strings.Repeat("d/", depth))
	must(t, os.MkdirAll(deep, 0o700))
	for i := range bigDirectory {
		must(t, os.Mkdir(filepath.Join(deep, longName(i)), 0o700))
	}
	memoryIsBounded(t, root, bigDirectory+depth+1, workers)
}

func longName(i int) string { return fmt.Sprintf("an-entry-with-a-name-of-some-length-%064d", i) }

// memoryIsBounded walks a volume with more names than may be in memory.
func memoryIsBounded(t *testing.T, root string, entries int64, workers int) {
	t.Helper()
	for _, exclusive := range []bool{false, true} {
		before, peak := liveHeap(), uint64(0)
		seen := &witness{look: func() {
			// The lower of two measurements: allocations during a measurement count as live.
			peak = max(peak, min(liveHeap(), liveHeap()))
		}}
		// A fast machine ends a walk before many looks are due, and a busy one misses some: repeat until there were enough.
		for end := time.Now().Add(2 * time.Minute); len(seen.progress)-seen.ended < 5; must(t, os.Chown(root, 0, 0)) {
			if time.Now().After(end) {
				t.Fatalf("looked %d times in %d walks: want more looks", len(seen.progress), seen.ended)
			}
			// Each look collects garbage twice: more frequent ones would take most of a slow machine's time.
			result := apply(t, Request{Path: root, GID: group, Exclusive: exclusive, Observer: seen, Workers: workers,
				Every: 50 * time.Millisecond})
			if result.Entries != entries {
				t.Fatalf("%+v: want %d entries", result, entries)
			}
		}
		// All names are 12 MB and more. Four workers' batches of 512 are 0.3 MB, and other allocations are some more.
		if grown := int64(peak) - int64(before); grown > 6<<20 {
			t.Errorf("exclusive %v: the live heap grew by %d bytes", exclusive, grown)
		}
	}
}

// liveHeap returns how much memory the garbage collector finds in use, without later allocations.
func liveHeap() uint64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// A file with several names is changed by the first of them, and only inspected by the others.
func TestHardLinksOnce(t *testing.T) {
	needRoot(t)
	for _, exclusive := range []bool{false, true} {
		root := t.TempDir()
		first := filepath.Join(root, "0")
		must(t, file(first))
		for i := range 20 {
			must(t, os.Link(first, filepath.Join(root, fmt.Sprint(i+1))))
		}
		result := apply(t, Request{Path: root, GID: group, Exclusive: exclusive, Workers: 1})
		if result.Entries != 22 || result.Changed != 2 || look(t, first).Gid != group {
			t.Errorf("exclusive %v: %+v, want 22 entries, of which the file once and the root were changed", exclusive, result)
		}
	}
}
