package filesystem

import (
	"errors"
	"math"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// watched is a blank device that records reads, delays them, and fails at one place.
type watched struct {
	faulty
	read  map[int64]bool
	pause time.Duration
	bad   int64
}

func (w *watched) ReadAt(p []byte, offset int64) (int, error) {
	<-time.After(w.pause)
	w.read[offset] = true
	if w.bad != 0 && offset <= w.bad && w.bad < offset+int64(len(p)) {
		return 0, unix.EIO
	}
	return w.faulty.ReadAt(p, offset)
}

func watch(size int64) *watched {
	return &watched{faulty: faulty{size, size}, read: map[int64]bool{}}
}

// However large and slow a disk is, all known places are read, and the time for samples is bounded.
func TestProofIsBounded(t *testing.T) {
	synctest.Test(t, proofIsBounded) // only the disk takes time
}

func proofIsBounded(t *testing.T) {
	const size = 1 << 40
	slow := watch(size)
	slow.pause = 10 * time.Millisecond
	begun := time.Now()
	w := newWindow(slow, size)
	if found := identify(t.Context(), w); w.err != nil || !found.Blank() || !found.Sampled {
		t.Errorf("found %+v, error %v, want a device that is blank by samples", found, w.err)
	}
	t.Logf("%d reads in %s", len(slow.read), time.Since(begun))
	for _, p := range places(size) {
		if !slow.read[p.page()] {
			t.Errorf("%s at %d was not looked for", p.name, p.offset)
		}
	}
	if missed := unread(slow, size); missed == 0 {
		t.Error("the samples were not bounded in time")
	}
	fast := watch(size)
	identify(t.Context(), newWindow(fast, size))
	if missed := unread(fast, size); missed != 0 {
		t.Errorf("%d samples were not read", missed)
	}
	for _, size := range []int64{1 << 30, 1 << 40, 1 << 46} {
		count := len(places(size)) + len(samplePlaces(size))
		t.Logf("%d bytes: %d places and samples", size, count)
		if count > 400 {
			t.Errorf("%d places and samples of %d bytes are read, want 400 at most", count, size)
		}
	}
}

// unread returns how many samples were not read.
func unread(w *watched, size int64) (count int) {
	for _, p := range samplePlaces(size) {
		if !w.read[p.page()] {
			count++
		}
	}
	return count
}

// An unreadable place is no proof.
func TestUnreadablePlaceIsNeverBlank(t *testing.T) {
	const size = 1 << 40
	for _, bad := range []int64{128 * mib, 64 * mib, size / 4, 5 * mib, 3 * size / 64} {
		r := watch(size)
		r.bad = bad
		w := newWindow(r, size)
		if identify(t.Context(), w); !errors.Is(w.err, unix.EIO) {
			t.Errorf("unreadable at %d: error %v, want EIO", bad, w.err)
		}
	}
}

// One byte anywhere on a disk that is not large is found, with its place.
func TestSmallDiskIsReadInFull(t *testing.T) {
	for size, places := range map[int64][]int64{
		16 * mib:         {headArea, 9*mib + 77, 15*mib - 1},
		quickWhole:       {headArea, 77*mib + 77, quickWhole - tailArea - 1},
		quickWhole - 512: {quickWhole - tailArea - 513},
	} {
		for _, at := range places {
			f := image(t, size)
			put(t, f, at, "x")
			if found := probe(t, f); found.Type != UnknownData || found.Seen != "data at byte "+strconv.FormatInt(at, 10) {
				t.Errorf("a byte at %d of %d: found %+v", at, size, found)
			}
		}
	}
}

// Parts of an image without data are not read, allocated or not. Its data is read, even if it is not in the file yet.
func TestImageIsReadWhereItHoldsSomething(t *testing.T) {
	f := image(t, 1<<30)
	d := attach(t, f)
	if found := probe(t, d.File); found != (Found{}) {
		t.Errorf("a sparse image: found %+v, want it blank, and all of it looked at", found)
	}
	if err := unix.Fallocate(int(f.Fd()), 0, 0, 1<<30); err != nil {
		t.Fatal(err)
	}
	put(t, f, 300*mib, string(make([]byte, 70_000)))
	if found := probe(t, d.File); found != (Found{}) {
		t.Errorf("an image of zeros: found %+v, want it blank, and all of it looked at", found)
	}
	const place = 777*mib + 5*4096
	if _, err := d.File.WriteAt([]byte("x"), place); err != nil {
		t.Fatal(err)
	}
	if found := probe(t, d.File); found.Type != UnknownData || found.Seen != "data at byte "+strconv.FormatInt(place, 10) {
		t.Errorf("with a byte that is not in the file yet: found %+v", found)
	}
}

// A disk that is too large for each proof is read in full on demand.
func TestWholeDiskIsRead(t *testing.T) {
	f := image(t, 200*mib)
	d := attach(t, f)
	if err := os.Remove(f.Name()); err != nil { // so that the file cannot be asked
		t.Fatal(err)
	}
	whole := Request{Whole: true}.proof(d.SizeBytes, nil)
	found, err := probeUpTo(t.Context(), d.File, d.SizeBytes, whole)
	if err != nil || found != (Found{}) {
		t.Errorf("a blank disk: %+v, %v, want it blank, and all of it read", found, err)
	}
	const place = 133*mib + 7*4096
	put(t, d.File, place, "x")
	if found := probe(t, d.File); !found.Blank() || !found.Sampled {
		t.Errorf("by samples: %+v, want it blank: the place is one that no sample is of", found)
	}
	if found, err := probeUpTo(t.Context(), d.File, d.SizeBytes, whole); err != nil ||
		found.Seen != "data at byte "+strconv.FormatInt(place, 10) {
		t.Errorf("with a byte on it: %+v, %v", found, err)
	}
}

// Of an image that holds more than is to be read, the maximum is read, even if its data is in one piece.
func TestDenseImageIsReadUpToTheLimit(t *testing.T) {
	f := image(t, 200*mib)
	put(t, f, 0, string(make([]byte, 20*mib)))
	const place = 9*mib + 7*4096 // no sample covers it
	put(t, f, place, "x")
	d := attach(t, f)
	for most, blank := range map[int64]bool{15 * mib: false, 7 * mib: true} {
		w := newWindow(d.File, d.SizeBytes)
		w.most = most
		if found := identify(t.Context(), w); w.err != nil || found.Blank() != blank || found.Sampled != blank ||
			found.Dense != blank {
			t.Errorf("with %d bytes read of what is held: found %+v, error %v, want blank by samples %t", most, found, w.err,
				blank)
		}
	}
}

// Before an image is formatted, everything that its file holds is read, however much that is. A disk is read in full if
// that is requested.
func TestProofOfAnImageHasNoLimit(t *testing.T) {
	const size = 4 << 30
	for whole, quick := range map[bool]int64{false: quickWhole, true: size} {
		got := Request{Whole: whole}.proof(size, nil)
		if got.most != math.MaxInt64 || got.quick != quick {
			t.Errorf("whole %t: %d bytes of an image's contents and disks of up to %d bytes are read, want %d and %d", whole,
				got.most, got.quick, int64(math.MaxInt64), quick)
		}
	}
}
