package tree

import (
	"fmt"
	"hash/fnv"
	"time"

	"golang.org/x/sys/unix"
)

// Instant is a time by the clock of a tree's filesystem. The zero value means none.
type Instant struct {
	At   unix.Timespec
	Seen time.Time // the same time by a monotonic clock of this process
}

// IsZero reports whether the Instant is the zero value.
func (i Instant) IsZero() bool { return i.At == (unix.Timespec{}) }

// Earlier returns the instant that is earlier by the duration.
func (i Instant) Earlier(by time.Duration) Instant {
	if i.IsZero() {
		return i
	}
	return Instant{unix.NsecToTimespec(unix.TimespecToNsec(i.At) - by.Nanoseconds()), i.Seen.Add(-by)}
}

// leeway is how much faster than this process's clock a filesystem's clock may run during a copy.
const leeway = time.Minute

// isAhead reports whether an entry's change time is in the future: the filesystem's clock was set back since the
// change. The time of that change is then unknown, but a further change can be noticed.
func (i Instant) isAhead(n *node) bool {
	now := unix.TimespecToNsec(i.At) + (time.Since(i.Seen) + leeway).Nanoseconds()
	return unix.TimespecToNsec(n.stat.Ctim) > now
}

// changed reports whether an entry was changed at the instant or later. An entry that is ahead counts as unchanged.
func (i Instant) changed(n *node) bool {
	last := n.stat.Ctim
	return !i.isAhead(n) && (last.Sec > i.At.Sec || last.Sec == i.At.Sec && last.Nsec >= i.At.Nsec)
}

// Ahead is a checksum of the entries that are ahead and their times, independent of their order. Two sums are equal
// when the same entries have the same times.
type Ahead uint64

func (a *Ahead) add(where string, n *node) {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%d.%d %s", n.stat.Ctim.Sec, n.stat.Ctim.Nsec, where) // It never fails.
	*a += Ahead(hash.Sum64())
}
