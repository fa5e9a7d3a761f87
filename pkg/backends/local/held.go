package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/filecopy"
)

const (
	// measureAge is how old a measurement may be, and measureShare how much of the time measuring may take: one in so
	// many.
	measureAge   = time.Minute
	measureShare = 20
	// mostMeasurements is how many are made at the same time on a filesystem.
	mostMeasurements = 2
)

// measured is how many bytes of a volume or snapshot are its own, where the filesystem does not say that at once: it
// was found out by looking at each of its files or extents. Until then it is nothing.
type measured struct {
	bytes atomic.Int64
	due   atomic.Pointer[time.Time] // when it is to be found out again, by the clock that nobody sets
}

// isDue reports whether it is to be found out, again or for the first time.
func (m *measured) isDue() bool {
	due := m.due.Load()
	return due == nil || !time.Now().Before(*due)
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

// holds is how many bytes the volume has of those that it was promised. What copies have in common is not a copy's.
func (v *volume) holds() int64 {
	size := v.record.Load().SizeBytes
	switch {
	case v.pool.kind == directory && v.isCopy():
		return 0
	case v.pool.kind == directory:
		return min(size, v.bytes.Load())
	}
	own := min(size, blocksOf(os.Lstat(v.data())))
	if v.isCopy() {
		own = min(own, v.bytes.Load())
	}
	return own
}

// holds is as for a volume. The snapshot of a directory was promised nothing.
func (s *snapshot) holds() int64 {
	if s.pool.kind == directory {
		return 0
	}
	own := min(s.record.SizeBytes, blocksOf(os.Lstat(s.data())))
	if s.pool.shares() {
		own = min(own, s.bytes.Load())
	}
	return own
}

// held is how many bytes all that is in the pools has of what was promised. It looks at last where a thing is first:
// what is made or deleted meanwhile is not counted twice.
func (e *engine) held(pools []*pool) (sum int64) {
	for _, p := range pools {
		sum += p.heldIn(trashFolder)
	}
	for _, entry := range e.snapshots.all() {
		if s := entry.item; s != nil && slices.Contains(pools, s.pool) {
			sum += s.holds()
		}
	}
	for _, entry := range e.volumes.all() {
		if v := entry.item; v != nil && slices.Contains(pools, v.pool) {
			sum += v.holds()
		}
	}
	for _, p := range pools {
		sum += p.heldIn(stagingFolder)
	}
	return sum
}

// owed is how many bytes the pools need beyond what they have promised: the snapshot of a directory that has its blocks
// in common with its volume lacks them once the volume is overwritten.
func (e *engine) owed(pools []*pool) (sum int64) {
	if !slices.ContainsFunc(pools, func(p *pool) bool { return p.kind == directory && p.shares() }) {
		return 0
	}
	for _, entry := range e.snapshots.all() {
		if s := entry.item; s != nil && slices.Contains(pools, s.pool) && s.pool.kind == directory && s.pool.shares() {
			sum += s.record.SizeBytes
		}
	}
	return sum
}

// heldIn is what images in a folder hold that are on no shelf, because they are being made or removed.
func (p *pool) heldIn(folder string) (sum int64) {
	if p.kind != image || p.shares() {
		return 0
	}
	files := os.DirFS(p.folder(folder))
	for _, pattern := range []string{"*/image", "*/*/image"} {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			continue // It would be a wrong pattern.
		}
		for _, name := range names {
			sum += blocksOf(fs.Stat(files, name))
		}
	}
	return sum
}

// measure finds out what is to be found out about the pools, as far as it gets to that before the context ends: the
// rest goes on in the background.
func (d *disk) measure(ctx context.Context) {
	pools := d.all()
	for _, entry := range d.engine.volumes.all() {
		v := entry.item
		switch {
		case v == nil || !slices.Contains(pools, v.pool):
		case v.pool.kind == directory && !v.isCopy():
			d.measureOne(ctx, entry.handle, &v.measured, v.data(), treeBytes)
		case v.pool.kind == image && v.isCopy():
			d.measureOne(ctx, entry.handle, &v.measured, v.data(), ownBytes)
		}
	}
	for _, entry := range d.engine.snapshots.all() {
		if s := entry.item; s != nil && slices.Contains(pools, s.pool) && s.pool.kind == image && s.pool.shares() {
			d.measureOne(ctx, entry.handle, &s.measured, s.data(), ownBytes)
		}
	}
}

func (d *disk) measureOne(ctx context.Context, handle string, m *measured, path string,
	bytes func(context.Context, string) (int64, error)) {
	if !m.isDue() {
		return
	}
	_, err := d.measuring.Do(ctx, background.Work{Key: handle, Name: fmt.Sprintf("measuring %s", handle)},
		func(ctx context.Context) (struct{}, error) {
			began := time.Now()
			n, err := bytes(ctx, path)
			if err != nil {
				n = 0
			}
			m.bytes.Store(n)
			due := time.Now().Add(max(measureAge, measureShare*time.Since(began)))
			m.due.Store(&due)
			return struct{}{}, err
		})
	if err != nil && !backends.Is(err, backends.Busy) && !backends.Is(err, backends.Unavailable) && ctx.Err() == nil {
		d.engine.log.Debug("it cannot be told how much is held: it counts as nothing", "of", handle, "error", err)
	}
}

// closeMeasuring ends what is being measured on all disks. One that hangs holds up the others no longer than the limit.
func (ds *disks) closeMeasuring(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var errs []error
	for _, d := range ds.all() {
		errs = append(errs, d.measuring.Close(ctx))
	}
	return errors.Join(errs...)
}

// ownBytes are those of an image that it has in common with no other.
func ownBytes(ctx context.Context, path string) (int64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // It was only read.
	return filecopy.OwnBytes(ctx, file)
}

// treeBytes are those of the blocks of all files of a directory. Hard links share theirs; what is mounted inside does
// not count.
func treeBytes(ctx context.Context, path string) (sum int64, err error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = root.Close() }() // It was only read.
	var device uint64
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil //nolint:nilerr // What is gone or cannot be read does not count.
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // As above.
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		if name == "." {
			device = stat.Dev
		}
		if stat.Dev != device {
			return fs.SkipDir
		}
		sum += stat.Blocks * 512 / max(1, int64(linksOf(info, stat)))
		return nil
	})
	return sum, err
}

// linksOf is how many names have a file's blocks in common. A directory's links are its own entries.
func linksOf(info os.FileInfo, stat *syscall.Stat_t) uint64 {
	if info.IsDir() {
		return 1
	}
	return stat.Nlink
}
