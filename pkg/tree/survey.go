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

// ErrChanged means that the tree was changed while it was copied.
var ErrChanged = errors.New("the tree was changed while it was copied")

// changedError is ErrChanged with the path.
type changedError struct{ path string }

// Error names the changed entry.
func (e *changedError) Error() string { return fmt.Sprintf("%v: %q", ErrChanged, e.path) }

// Unwrap returns ErrChanged.
func (e *changedError) Unwrap() error { return ErrChanged }

// Survey is the result of a Look.
type Survey struct {
	Bytes  int64    // disk usage of the files; a file counts once for each of its names
	Recent []string // the most recently changed entries: one that is changed all the time is among them
	Ahead  Ahead    // of the entries whose change times are unknown
}

// sighting is a candidate for the recent entries.
type sighting struct {
	path string
	at   unix.Timespec
}

// surveyor is a survey in progress.
type surveyor struct {
	since Instant
	all   bool // for Measure: count all kinds of entries, a file once for all its names, and skip inaccessible ones
	bytes int64
	last  []sighting
	ahead Ahead
}

// Look surveys the tree below a directory. It fails with ErrChanged at the first entry that was changed since the
// instant, unless that is zero; else as Replicate.
func Look(ctx context.Context, src *os.File, since Instant) (Survey, error) {
	return look(ctx, src, &surveyor{since: since})
}

// Measure returns the disk usage of a directory and everything below it that is accessible. It skips the content of
// directories that even this process may not read, mounts inside, and entries that were removed meanwhile. Each hard
// link counts as its share of the file. With an error, such as the end of the context, it returns the sum so far: a
// tree may be too large for the time, deeper than there are descriptors, or endless if a server makes up names.
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

// leavesOut reports whether the survey continues without the entry that caused the error.
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

// take records an entry. It fails with ErrChanged if the entry was changed since the instant.
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

// keep keeps only the most recent entries.
func (s *surveyor) keep(count int) {
	slices.SortFunc(s.last, func(a, b sighting) int {
		return cmp.Or(cmp.Compare(b.at.Sec, a.at.Sec), cmp.Compare(b.at.Nsec, a.at.Nsec))
	})
	s.last = s.last[:min(count, len(s.last))]
}

// Unchanged fails with ErrChanged if one of the entries below the directory was changed since the instant, or is gone.
// An entry whose status cannot be read counts as unchanged.
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
