package local

import (
	"iter"
	"math"
	"os"
	"slices"
	"syscall"
)

// holding is how many bytes things have of those that they were promised, and how many were free when that was found
// out: what they have given back since must not count twice.
type holding struct{ bytes, free int64 }

// atMost bounds the bytes.
func (h holding) atMost(bytes int64) holding {
	if h.bytes > bytes {
		h.bytes = bytes
	}
	return h
}

func (h *holding) add(other holding) {
	h.bytes += other.bytes
	if other.bytes > 0 {
		h.free = min(h.free, other.free)
	}
}

// blocksOf is how many bytes of blocks a file has, at most those that it can hold; none for one that is gone.
func blocksOf(info os.FileInfo, err error) int64 {
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return min(stat.Blocks*512, info.Size())
}

// shares reports whether a copy in the pool may have its blocks in common with its source, as long as that is not known
// too.
func (p *pool) shares() bool { return p.reflink.Load() || !p.probed.Load() }

// isCopy reports whether the volume may have blocks in common with others.
func (v *volume) isCopy() bool {
	r := v.record.Load()
	return v.pool.shares() && (r.SourceSnapshot != "" || r.SourceVolume != "") && r.Allocation != full
}

// thing is as much of a volume or snapshot as tells what room it has.
type thing struct {
	*measured
	path     string
	size     int64
	snapshot bool
	shared   bool // whether it may have blocks in common with others
}

func (v *volume) thing() thing {
	return thing{measured: &v.measured, path: v.data(), size: v.record.Load().SizeBytes, shared: v.isCopy()}
}

func (s *snapshot) thing() thing {
	return thing{measured: &s.measured, path: s.data(), size: s.record.SizeBytes, snapshot: true,
		shared: s.pool.shares()}
}

// nothingHeld is for who does not want to look.
func nothingHeld([]*pool) holding { return holding{free: math.MaxInt64} }

// held is what all that is in the pools has of what was promised. It looks at last where a thing is first: what is made
// or deleted meanwhile is not counted twice.
func (s *stock) held(pools []*pool) holding {
	sum := holding{free: math.MaxInt64}
	for _, p := range pools {
		sum.bytes += p.heldIn(trashFolder)
	}
	for _, entry := range s.snapshots.all() {
		if one := entry.item; one != nil && slices.Contains(pools, one.pool) {
			sum.add(one.pool.storage.holds(one.thing()))
		}
	}
	for _, entry := range s.volumes.all() {
		if v := entry.item; v != nil && slices.Contains(pools, v.pool) {
			sum.add(v.pool.storage.holds(v.thing()))
		}
	}
	for _, p := range pools {
		sum.bytes += p.heldIn(stagingFolder)
	}
	return sum
}

// owed is how many bytes the pools need beyond what they have promised: a snapshot that was promised nothing, and has
// its blocks in common with its volume, lacks them once the volume is overwritten.
func (s *stock) owed(pools []*pool) (sum int64) {
	if !slices.ContainsFunc(pools, (*pool).owesSnapshots) {
		return 0
	}
	for _, entry := range s.snapshots.all() {
		if one := entry.item; one != nil && slices.Contains(pools, one.pool) && one.pool.owesSnapshots() {
			sum += one.record.SizeBytes
		}
	}
	return sum
}

// owesSnapshots reports whether the pool has promised its snapshots nothing, and may owe them all.
func (p *pool) owesSnapshots() bool { return !p.storage.promisesSnapshots && p.shares() }

// heldIn is what the data in a folder holds that is on no shelf, because it is being made or removed.
func (p *pool) heldIn(folder string) int64 { return p.heldBelow(p.entries(folder)) }

// heldBy is what the data in one entry of such a folder holds.
func (p *pool) heldBy(path string) int64 { return p.heldBelow(slices.Values([]string{path})) }

func (p *pool) heldBelow(dirs iter.Seq[string]) int64 {
	if p.shares() {
		return 0
	}
	return p.storage.heldBelow(dirs)
}
