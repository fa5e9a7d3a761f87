package filesystem

import (
	"context"
	"fmt"
	"os"
	"time"
)

const (
	// quickWhole is the size in bytes of the largest disk that each proof reads in full. It is also the most that Probe
	// reads of an image's contents. A larger ext4 with the common block size of 4 KiB has a second superblock.
	quickWhole = 128 << 20
	// WholeLimit is the size in bytes of the largest disk that is read in full before it is formatted if samples are not
	// sufficient. For an image there is no limit.
	WholeLimit = 1 << 30
	// samplesTime bounds the time for reading samples. Known places are read however long that takes.
	samplesTime = 2 * time.Second
)

// blank looks for a byte that is not zero and records in w.seen what it found and where. If it finds none, sampled
// reports whether some bytes were not read. blank reads the signature areas, and in addition
//   - of an image, everything that its file holds;
//   - of a small disk, everything;
//   - of anything else, the places where filesystems keep copies of their beginning, and samples of the rest.
func (w *window) blank(ctx context.Context) (blank, sampled bool) {
	if w.size <= headArea+tailArea {
		return w.zero(ctx, 0, w.size), false
	}
	if !w.zero(ctx, 0, headArea) || !w.zero(ctx, w.size-tailArea, tailArea) {
		return false, false
	}
	zero, whole := w.zeroHeld(ctx)
	switch {
	case !zero || whole:
		return zero, false
	case w.size <= w.quick:
		return w.zero(ctx, headArea, w.size-tailArea-headArea), false
	}
	return w.zeroPlaces(ctx), true
}

// zeroPlaces reads the known places and the samples.
func (w *window) zeroPlaces(ctx context.Context) bool {
	begun := time.Now()
	known, samples := places(w.size), samplePlaces(w.size)
	if dev, ok := w.r.(*os.File); ok {
		announce(dev, pages(known))
		announce(dev, pages(samples))
	}
	for _, p := range known {
		if !w.zero(ctx, p.page(), markSize) {
			if page := w.read(p.page(), markSize); page != nil && p.on(page) {
				w.seen = fmt.Sprintf("%s at byte %d", p.name, p.offset)
			}
			return false
		}
	}
	for _, p := range samples {
		if time.Since(begun) > samplesTime {
			break
		}
		if !w.zero(ctx, p.page(), markSize) {
			return false
		}
	}
	return true
}
