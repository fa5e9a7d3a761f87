package powerloss

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// model is the behaviour of a drive when the power fails.
type model string

const (
	strict model = "strict" // it has every write
	cached model = "cached" // it has the writes before the last flush, and some of the later ones, some of them torn
	// deaf is a broken drive that ignores the last flushes. The test must detect that.
	deaf model = "deaf"
)

// cut is one moment at which the power fails, and one result on the drive.
type cut struct {
	model model
	after int    // the last journal entry before the cut
	seed  uint64 // selects the kept writes since the last flush
}

func (c cut) String() string { return fmt.Sprintf("%s/%d/%d", c.model, c.after, c.seed) }

// allCuts returns the cuts of a model: for strict one for each write, after the acknowledgements that follow it; for
// cached before each flush and after each acknowledgement, with the given number of seeds.
func allCuts(entries []entry, m model, seeds int) []cut {
	var cuts []cut
	for i, e := range entries {
		last := i+1 == len(entries)
		switch {
		case m == strict && (last || entries[i+1].onDrive()):
			cuts = append(cuts, cut{model: m, after: i})
		case m != strict && (last || entries[i+1].kind == flushed || e.acknowledges()):
			for seed := range seeds {
				cuts = append(cuts, cut{model: m, after: i, seed: uint64(seed)})
			}
		}
	}
	return cuts
}

// sample returns the cuts right after an acknowledgement, and random others up to the count, in their order.
func sample(cuts []cut, entries []entry, count int, rng *rand.Rand) []cut {
	if len(cuts) <= count {
		return cuts
	}
	var picked, rest []cut
	for _, c := range cuts {
		if c.seed == 0 && acknowledges(entries, c.after) {
			picked = append(picked, c)
		} else {
			rest = append(rest, c)
		}
	}
	rng.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	picked = append(picked, rest[:max(0, min(len(rest), count-len(picked)))]...)
	slices.SortFunc(picked, func(a, b cut) int { return a.after - b.after })
	return picked
}

// acknowledges reports whether an operation was acknowledged since the last write.
func acknowledges(entries []entry, after int) bool {
	for i := after; i >= 0 && !entries[i].onDrive(); i-- {
		if entries[i].acknowledges() {
			return true
		}
	}
	return false
}

// deafness is the number of flushes that a deaf drive ignores.
const deafness = 4

// restorer reconstructs the drive after a cut. Cuts must come in their order.
type restorer struct {
	recording *recording
	durable   image // all entries before next
	next      int
	belief    *belief // all entries before known
	known     int
	seed      uint64
}

func newRestorer(r *recording, seed uint64) *restorer {
	return &restorer{recording: r, durable: slices.Clone(r.blank), belief: r.belief.clone(), seed: seed}
}

// restore returns the content of the drive, and the expected state.
func (r *restorer) restore(c cut) (image, *belief) {
	boundary := c.after + 1
	if c.model != strict {
		boundary = r.lastFlush(c)
	}
	for ; r.next < boundary; r.next++ {
		r.recording.entries[r.next].applyTo(r.durable)
	}
	for ; r.known <= c.after; r.known++ {
		r.belief.follow(r.recording.entries[r.known])
	}
	m := slices.Clone(r.durable)
	r.lose(m, r.volatile(boundary, c.after+1), c)
	return m, r.belief.clone()
}

// lastFlush returns the index of the first entry whose writes are not durable.
func (r *restorer) lastFlush(c cut) int {
	unheard := 0
	if c.model == deaf {
		unheard = deafness
	}
	for i := c.after; i >= 0; i-- {
		if r.recording.entries[i].kind != flushed {
			continue
		}
		if unheard == 0 {
			return max(i, r.next)
		}
		unheard--
	}
	return 0
}

func (r *restorer) volatile(from, to int) []entry {
	var writes []entry
	for i := from; i < to; i++ {
		if r.recording.entries[i].onDrive() {
			writes = append(writes, r.recording.entries[i])
		}
	}
	return writes
}

// lose keeps some of the writes. The first seeds are extremes: none; all but one; only the last ones; then random.
func (r *restorer) lose(m image, writes []entry, c cut) {
	rng := rand.New(rand.NewPCG(r.seed+c.seed, uint64(c.after)))
	lost, density := rng.IntN(len(writes)+1), rng.Float64()
	for i, w := range writes {
		switch c.seed {
		case 0:
			continue
		case 1:
			if i != lost {
				w.applyTo(m)
			}
		case 2:
			if i > lost {
				w.applyTo(m)
			}
		default:
			r.keep(m, w, density, rng)
		}
	}
}

// keep keeps a write with the given probability, and a third of those only in part.
func (r *restorer) keep(m image, w entry, density float64, rng *rand.Rand) {
	if rng.Float64() >= density {
		return
	}
	if rng.IntN(3) == 0 && r.recording.filesystem.tears(w) {
		w.tear(m, r.recording.filesystem.sector, func() bool { return rng.IntN(2) == 0 })
		return
	}
	w.applyTo(m)
}
