package tree

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Replication configures Replicate.
type Replication struct {
	// Workers is how many files are copied at a time.
	Workers int
	// Links is a directory on the copy's filesystem that has one name for each file with several names: see hardLink.
	Links *os.File
	// Lenient omits privileges and labels that the copy's filesystem does not let this process set.
	Lenient bool
	// Since, unless zero, is a time of the source's filesystem: the copy is the tree as of that time, or Replicate fails
	// with ErrChanged. Ahead is from the Survey of a Look since that time. Lag is how out of date the kernel's answer
	// about a source file may be.
	Since Instant
	Ahead Ahead
	Lag   time.Duration
	// Direct bypasses the kernel's cache when reading files (O_DIRECT, open(2)). Their filesystem must allow that at any
	// offset, as NFS does.
	Direct bool
	// Progress may be nil.
	Progress *Progress
	// Before, unless nil, is called before each entry is copied.
	Before func(ctx context.Context)
}

// Progress has the counters of a copy in progress.
type Progress struct {
	Entries atomic.Int64 // entries in place
	Bytes   atomic.Int64 // bytes of files in place
	Taken   atomic.Int64 // disk usage of those files' originals in bytes, as Survey counts it
}

// replica is a replication in progress.
type replica struct {
	Replication
	turns chan struct{}
	ahead Ahead // as of the end
	mu    sync.Mutex
	err   error // the first failure of a worker
}

// Replicate fills the directory dst, which must be empty and belong to the caller, with a copy of everything in the
// directory src, with its metadata, and returns when it is on disk. It notices a change of the source when it reaches
// the entry, and in any case at the end. After a failure the content of dst is undefined.
//
// It fails with ErrMount, ErrTooDeep, ErrChanged, or an error that wraps the kernel's.
func Replicate(ctx context.Context, dst, src *os.File, how Replication) error {
	if how.Progress == nil {
		how.Progress = new(Progress)
	}
	r := &replica{Replication: how, turns: make(chan struct{}, max(1, how.Workers))}
	if err := r.fill(ctx, dst, src, ".", 0); err != nil {
		return err
	}
	if !r.Since.IsZero() {
		if err := rest(ctx, r.Lag); err != nil {
			return err
		}
	}
	if err := r.settle(ctx, dst, src, ".", 0); err != nil {
		return err
	}
	if r.ahead != r.Ahead {
		return &changedError{"an entry of a time that has not come yet"}
	}
	return unix.Syncfs(int(dst.Fd()))
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// each calls visit for every entry of a directory. It ignores entries that were removed meanwhile. After the given
// number of those in a row it fails with ErrEndless.
func each(ctx context.Context, dir *os.File, most int, visit func(n *node) error) error {
	return eachBut(ctx, dir, most, func(error) bool { return false }, visit)
}

// eachBut is each, but skips the entries that cannot be opened if leave returns true for the error.
func eachBut(ctx context.Context, dir *os.File, most int, leave func(error) bool, visit func(n *node) error) error {
	missing := gone{most: most}
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return err
	}
	for {
		names, err := dir.Readdirnames(batch)
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			n, err := openNode(dir, name)
			isGone := errors.Is(err, unix.ENOENT)
			if endless := missing.next(isGone); endless != nil {
				return endless
			}
			if isGone || err != nil && leave(err) {
				continue
			}
			if err != nil {
				return err
			}
			if err := visit(n); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// fill copies the entries of a directory, its subdirectories one after another and its files several at a time.
func (r *replica) fill(ctx context.Context, dst, src *os.File, at string, depth int) error {
	if depth >= maxDepth {
		return ErrTooDeep
	}
	var files sync.WaitGroup
	err := each(ctx, src, mostGone, func(n *node) error {
		if r.Before != nil {
			r.Before(ctx)
		}
		if err := errors.Join(r.failed(), r.unchanged(n, at)); err != nil {
			n.close()
			return err
		}
		switch {
		case n.kind() == unix.S_IFDIR:
			defer n.close()
			return r.subdirectory(ctx, dst, n, at, depth)
		case n.kind() == unix.S_IFSOCK:
			n.close()
			return nil
		case n.stat.Nlink > 1: // Its names must be copied one after another.
			defer n.close()
			return r.entry(ctx, dst, n)
		}
		r.turns <- struct{}{}
		files.Go(func() {
			defer func() { n.close(); <-r.turns }()
			r.note(r.entry(ctx, dst, n))
		})
		return nil
	})
	files.Wait()
	return errors.Join(err, r.failed())
}

func (r *replica) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

func (r *replica) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func (r *replica) subdirectory(ctx context.Context, dst *os.File, n *node, at string, depth int) error {
	err := unix.Mkdirat(int(dst.Fd()), n.name, 0o700)
	if errors.Is(err, unix.EEXIST) { // The directory was changed while it was read, and shows the name twice.
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "mkdirat", Path: n.name, Err: err}
	}
	return r.both(dst, n, func(to, from *os.File) error { return r.fill(ctx, to, from, path.Join(at, n.name), depth+1) })
}

// both opens a directory and its copy.
func (r *replica) both(dst *os.File, n *node, work func(to, from *os.File) error) error {
	from, err := n.open(0)
	if err != nil {
		return err
	}
	defer closeQuietly(from)
	to, err := openDir(dst, n.name)
	if err != nil {
		return err
	}
	defer closeQuietly(to)
	return work(to, from)
}

// entry copies anything but a directory or socket. If the directory is changed while it is read, a name may appear
// twice: it is copied once.
func (r *replica) entry(ctx context.Context, dst *os.File, n *node) error {
	defer r.Progress.Entries.Add(1)
	c := &copier{links: r.Links, lenient: r.Lenient, direct: r.Direct}
	var err error
	if n.stat.Nlink > 1 {
		err = c.hardLink(ctx, dst, n)
	} else {
		err = c.leaf(ctx, dst, n)
	}
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err == nil && n.kind() == unix.S_IFREG {
		r.Progress.Bytes.Add(n.stat.Size)
		r.Progress.Taken.Add(n.stat.Blocks * blockSize)
	}
	return err
}

// settle sets the metadata of directories, the deepest first, and checks whether an entry was changed.
func (r *replica) settle(ctx context.Context, dst, src *os.File, at string, depth int) error {
	if depth >= maxDepth {
		return ErrTooDeep
	}
	err := each(ctx, src, mostGone, func(n *node) error {
		defer n.close()
		if err := r.unchanged(n, at); err != nil || n.kind() != unix.S_IFDIR {
			r.seen(n, at)
			return err
		}
		return r.both(dst, n,
			func(to, from *os.File) error { return r.settle(ctx, to, from, path.Join(at, n.name), depth+1) })
	})
	if err != nil {
		return err
	}
	return r.finishDir(dst, src, at)
}

// finishDir sets the metadata of a directory's copy.
func (r *replica) finishDir(dst, src *os.File, at string) error {
	n, err := openNode(src, ".")
	if err != nil {
		return err
	}
	defer n.close()
	if err := r.unchanged(n, at); err != nil {
		return err
	}
	r.seen(n, at)
	meta, err := metadataOf(n)
	if err != nil {
		return err
	}
	meta.lenient = r.Lenient
	return finish(dst, ".", meta)
}

// unchanged fails with ErrChanged if an entry of the directory at was changed since the instant of the copy.
func (r *replica) unchanged(n *node, at string) error {
	if !r.Since.IsZero() && r.Since.changed(n) {
		return &changedError{path.Join(at, n.name)}
	}
	return nil
}

// seen adds an entry to the final sum if it is ahead.
func (r *replica) seen(n *node, at string) {
	if !r.Since.IsZero() && r.Since.isAhead(n) {
		r.ahead.add(path.Join(at, n.name), n)
	}
}
