package local

import (
	"io/fs"
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

// holds is what the volume has of those bytes that it was promised. What copies have in common is not a copy's.
func (v *volume) holds() holding {
	size := v.record.Load().SizeBytes
	switch {
	case v.pool.kind.name == directory && v.isCopy():
		return holding{free: math.MaxInt64}
	case v.pool.kind.name == directory:
		return v.held().atMost(size)
	}
	own := min(size, blocksOf(os.Lstat(v.data())))
	if v.isCopy() {
		return v.held().atMost(own)
	}
	return holding{bytes: own, free: math.MaxInt64}
}

// holds is as for a volume. The snapshot of a directory was promised nothing.
func (s *snapshot) holds() holding {
	if s.pool.kind.name == directory {
		return holding{free: math.MaxInt64}
	}
	own := min(s.record.SizeBytes, blocksOf(os.Lstat(s.data())))
	if s.pool.shares() {
		return s.held().atMost(own)
	}
	return holding{bytes: own, free: math.MaxInt64}
}

// nothingHeld is for who does not want to look.
func nothingHeld([]*pool) holding { return holding{free: math.MaxInt64} }

// held is what all that is in the pools has of what was promised. It looks at last where a thing is first: what is made
// or deleted meanwhile is not counted twice.
func (e *engine) held(pools []*pool) holding {
	sum := holding{free: math.MaxInt64}
	for _, p := range pools {
		sum.bytes += p.heldIn(trashFolder)
	}
	for _, entry := range e.snapshots.all() {
		if s := entry.item; s != nil && slices.Contains(pools, s.pool) {
			sum.add(s.holds())
		}
	}
	for _, entry := range e.volumes.all() {
		if v := entry.item; v != nil && slices.Contains(pools, v.pool) {
			sum.add(v.holds())
		}
	}
	for _, p := range pools {
		sum.bytes += p.heldIn(stagingFolder)
	}
	return sum
}

// owed is how many bytes the pools need beyond what they have promised: the snapshot of a directory that has its blocks
// in common with its volume lacks them once the volume is overwritten.
func (e *engine) owed(pools []*pool) (sum int64) {
	if !slices.ContainsFunc(pools, func(p *pool) bool { return p.kind.name == directory && p.shares() }) {
		return 0
	}
	for _, entry := range e.snapshots.all() {
		if s := entry.item; s != nil && slices.Contains(pools, s.pool) && s.pool.kind.name == directory && s.pool.shares() {
			sum += s.record.SizeBytes
		}
	}
	return sum
}

// heldIn is what images in a folder hold that are on no shelf, because they are being made or removed.
func (p *pool) heldIn(folder string) (sum int64) {
	return p.heldBelow(p.folder(folder), "*/image", "*/*/image")
}

// heldBy is what images in one entry of such a folder hold.
func (p *pool) heldBy(path string) int64 { return p.heldBelow(path, entryImages()...) }

func (p *pool) heldBelow(dir string, patterns ...string) (sum int64) {
	if p.kind.name != image || p.shares() {
		return 0
	}
	for _, info := range imagesBelow(dir, patterns...) {
		sum += blocksOf(info, nil)
	}
	return sum
}

// entryImages are the patterns of the images in the folder of a volume or snapshot, or of a group.
func entryImages() []string { return []string{"image", "*/image"} }

// imagesBelow are the images that can be looked at and fit one of the patterns.
func imagesBelow(dir string, patterns ...string) (found []os.FileInfo) {
	files := os.DirFS(dir)
	for _, pattern := range patterns {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			continue // It would be a wrong pattern.
		}
		for _, name := range names {
			if info, err := fs.Stat(files, name); err == nil {
				found = append(found, info)
			}
		}
	}
	return found
}
