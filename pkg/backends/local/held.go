package local

import (
	"iter"
	"math"
	"os"
	"slices"
	"syscall"
)

// holding is how many of their promised bytes items hold, and how many bytes were free at the time of the count. Bytes
// that items have given back since must not count twice.
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

// blocksOf is how many bytes of blocks a file has, at most its size; 0 if the file is gone.
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

// shares reports whether a copy in the pool may share blocks with its source. As long as that is unknown, it may.
func (p *pool) shares() bool { return p.reflink.Load() || !p.probed.Load() }

// isCopy reports whether the volume may share blocks with others.
func (v *volume) isCopy() bool {
	r := v.record.Load()
	return v.pool.shares() && (r.SourceSnapshot != "" || r.SourceVolume != "") && r.Allocation != full
}

// thing has the fields of a volume or snapshot that its room depends on.
type thing struct {
	*measured
	path     string
	size     int64
	snapshot bool
	shared   bool // whether it may share blocks with others
}

func (v *volume) thing() thing {
	return thing{measured: &v.measured, path: v.data(), size: v.record.Load().SizeBytes, shared: v.isCopy()}
}

func (s *snapshot) thing() thing {
	return thing{measured: &s.measured, path: s.data(), size: s.record.SizeBytes, snapshot: true,
		shared: s.pool.shares()}
}

// nothingHeld is for callers that skip the count.
func nothingHeld([]*pool) holding { return holding{free: math.MaxInt64} }

// held returns how many promised bytes the items in the pools hold. It looks last where an item is first, so that items
// created or deleted meanwhile are not counted twice.
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

// owed is how many bytes the pools need beyond their promises. A snapshot without a promise that shares blocks with its
// volume needs them once the volume is overwritten.
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

// owesSnapshots reports whether the pool has promised its snapshots nothing and may need space for them.
func (p *pool) owesSnapshots() bool { return !p.storage.promisesSnapshots && p.shares() }

// heldIn is how many bytes the data in a folder holds. The items in it are on no shelf, because they are being created
// or removed.
func (p *pool) heldIn(folder string) int64 { return p.heldBelow(p.entries(folder)) }

// heldBy is how many bytes the data in one entry of such a folder holds.
func (p *pool) heldBy(path string) int64 { return p.heldBelow(slices.Values([]string{path})) }

func (p *pool) heldBelow(dirs iter.Seq[string]) int64 {
	if p.shares() {
		return 0
	}
	return p.storage.heldBelow(dirs)
}
