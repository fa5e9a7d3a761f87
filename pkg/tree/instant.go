package tree

import (
	"fmt"
	"hash/fnv"
	"time"

	"golang.org/x/sys/unix"
)

// Instant is a time of a tree's filesystem. The zero value is none.
type Instant struct {
	At   unix.Timespec
	Seen time.Time // when that was, by a clock of this process that nobody sets
}

// IsZero reports whether it is none.
func (i Instant) IsZero() bool { return i.At == (unix.Timespec{}) }

// Earlier returns the instant so long before.
func (i Instant) Earlier(by time.Duration) Instant {
	if i.IsZero() {
		return i
	}
	return Instant{unix.NsecToTimespec(unix.TimespecToNsec(i.At) - by.Nanoseconds()), i.Seen.Add(-by)}
}

// leeway is how much faster than this process' clock that of a filesystem may run while a tree is copied.
const leeway = time.Minute

// isAhead reports whether the filesystem says of an entry that it was changed at a time that has not come yet: its
// clock was set back since then. When the entry was changed is not known, only whether it is changed again.
func (i Instant) isAhead(n *node) bool {
	now := unix.TimespecToNsec(i.At) + (time.Since(i.Seen) + leeway).Nanoseconds()
	return unix.TimespecToNsec(n.stat.Ctim) > now
}

// changed reports whether an entry was changed at the instant or later. One that is ahead has not, as far as is known.
func (i Instant) changed(n *node) bool {
	last := n.stat.Ctim
	return !i.isAhead(n) && (last.Sec > i.At.Sec || last.Sec == i.At.Sec && last.Nsec >= i.At.Nsec)
}

// Ahead sums up the entries that are ahead and their times, in any order: two sums are equal when the same entries have
// the same times.
type Ahead uint64

func (a *Ahead) add(where string, n *node) {
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%d.%d %s", n.stat.Ctim.Sec, n.stat.Ctim.Nsec, where) // It never fails.
	*a += Ahead(hash.Sum64())
}
