package tree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

const (
	// recent is how many entries a Survey names.
	recent = 32
	// blockSize is the unit of st_blocks (stat(2)).
	blockSize = 512
)

// ErrChanged says that the tree was written to while it was copied.
var ErrChanged = errors.New("the tree was changed while it was copied")

// changedError is ErrChanged with the place.
type changedError struct{ path string }

// Error names the entry that was changed.
func (e *changedError) Error() string { return fmt.Sprintf("%v: %q", ErrChanged, e.path) }

// Unwrap returns ErrChanged.
func (e *changedError) Unwrap() error { return ErrChanged }

// Survey is what a look at a tree has found.
type Survey struct {
	Bytes  int64    // that the files take; hard links count as often as they are
	Recent []string // the entries that were changed last: one that is changed all the time is among them
	Ahead  Ahead    // of those of which it is not known when they were changed
}

// sighting is an entry that may be one of the recent ones.
type sighting struct {
	path string
	at   unix.Timespec
}

// surveyor is one survey under way.
type surveyor struct {
	since Instant
	all   bool // what is taken is counted: of all entries, once for all names, and as far as they can be looked at
	bytes int64
	last  []sighting
	ahead Ahead
}

// Look surveys the tree below a directory. It fails with ErrChanged as soon as it comes to an entry that was changed
// since then, unless that is zero; else as Replicate.
func Look(ctx context.Context, src *os.File, since Instant) (Survey, error) {
	return look(ctx, src, &surveyor{since: since})
}

// Measure adds up what a directory and all below it takes on its disk, as far as that can be looked at: what a
// directory holds that keeps even this process out is left out, and so is what is mounted inside, or gone meanwhile.
// Hard links share what their file takes. With an error, such as the end of its context, it returns what it has counted
// by then: a tree can be larger than there is time, deeper than there are descriptors, or endless where a server makes
// up names.
func Measure(ctx context.Context, src *os.File) (bytes int64, err error) {
	found, err := look(ctx, src, &surveyor{all: true})
	return found.Bytes, err
}

func look(ctx context.Context, src *os.File, s *surveyor) (Survey, error) {
	root, err := openNode(src, ".")
	if err != nil {
		return Survey{}, err
	}
	defer root.close()
	if err := s.take(root, "."); err != nil {
		return Survey{}, err
	}
	if err := s.walk(ctx, src, ".", 0); err != nil {
		return Survey{Bytes: s.bytes}, err
	}
	s.keep(recent)
	found := Survey{Bytes: s.bytes, Ahead: s.ahead}
	for _, seen := range s.last {
		found.Recent = append(found.Recent, seen.path)
	}
	return found, nil
}

func (s *surveyor) walk(ctx context.Context, dir *os.File, at string, depth int) error {
	if depth >= maxDepth {
		return ErrTooDeep
	}
	return eachBut(ctx, dir, mostGone, s.leavesOut, func(n *node) error {
		defer n.close()
		where := path.Join(at, n.name)
		if err := s.take(n, where); err != nil || n.kind() != unix.S_IFDIR {
			return err
		}
		err := s.enter(ctx, n, where, depth+1)
		if err != nil && s.leavesOut(err) {
			return nil
		}
		return err
	})
}

// leavesOut reports whether the survey goes on without what this is the error of.
func (s *surveyor) leavesOut(err error) bool {
	return s.all && (errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrMount))
}

func (s *surveyor) enter(ctx context.Context, n *node, where string, depth int) error {
	dir, err := n.open(0)
	if err != nil {
		return err
	}
	defer closeQuietly(dir)
	return s.walk(ctx, dir, where, depth)
}

// take notes an entry.
func (s *surveyor) take(n *node, where string) error {
	switch {
	case s.since.IsZero():
	case s.since.isAhead(n):
		s.ahead.add(where, n)
	case s.since.changed(n):
		return &changedError{where}
	}
	switch {
	case s.all && n.kind() != unix.S_IFDIR:
		s.bytes += n.stat.Blocks * blockSize / max(1, int64(n.stat.Nlink))
	case s.all, n.kind() == unix.S_IFREG:
		s.bytes += n.stat.Blocks * blockSize
	}
	if s.last = append(s.last, sighting{where, n.stat.Ctim}); len(s.last) >= batch {
		s.keep(recent)
	}
	return nil
}

// keep forgets all but the latest entries.
func (s *surveyor) keep(count int) {
	slices.SortFunc(s.last, func(a, b sighting) int {
		return cmp.Or(cmp.Compare(b.at.Sec, a.at.Sec), cmp.Compare(b.at.Nsec, a.at.Nsec))
	})
	s.last = s.last[:min(count, len(s.last))]
}

// Unchanged fails with ErrChanged when one of the entries below the directory was changed since then, or is gone. What
// cannot be looked at has not changed as far as is known.
func Unchanged(src *os.File, entries []string, since Instant) error {
	how := &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS,
	}
	for _, entry := range entries {
		fd, err := unix.Openat2(int(src.Fd()), entry, how)
		if errors.Is(err, unix.ENOENT) {
			return &changedError{entry}
		}
		if err != nil {
			continue
		}
		n := &node{name: entry, fd: fd}
		err = unix.Fstat(fd, &n.stat)
		n.close()
		if err == nil && since.changed(n) {
			return &changedError{entry}
		}
	}
	return nil
}
