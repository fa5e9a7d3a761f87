package failover

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/machines"
)

// record is what a manager remembers of a node. All instants are of the process' own clock.
type record struct {
	uid, boot string
	// the last one that named a machine: a driver that stops takes its registration with it
	query  machines.Query
	system string // the machine that it names, as its firmware calls it; empty while that is not known
	past   string // the machine that was the node before, while the Node may still show it

	renewal string    // of the Lease, when it was seen last
	life    time.Time // when the last sign of life was seen, or the node for the first time
	renewed bool      // whether this process has seen a sign of life
	born    time.Time // when the node was seen to have started, or to be back

	// when the machine began that was seen to run once that could be no old answer; zero if it was not
	known  time.Time
	newest machines.Machine // the newest answer
	off    word             // the last one that says that the machine is off
	asked  time.Time        // when the last question was asked
	vague  bool             // whether the answer said nothing

	mark    mark
	taint   string
	marked  time.Time          // when it was seen first that it is out of service by such a taint
	deleted map[types.UID]bool // pods that were deleted since ours is there

	mute   bool    // whether it was told that nothing is known of the machine, though the node works
	told   verdict // what was said last about the node
	toldAt time.Time
}

// word is an answer that a machine is off, of a start of it.
type word struct {
	began, asked time.Time // asked for the first time
	refuted      bool      // the node lived on for long after it: it is of another machine, or wrong
}

// see notes what is seen of a node. An object with another UID is another node.
func (r *record) see(s sight, now time.Time, t timing) {
	if r.uid != s.uid {
		*r = record{uid: s.uid, boot: s.boot, renewal: s.renewal, life: now, born: now}
	}
	back := s.renewal != r.renewal && r.silent(now, t.quiet)
	if s.boot != r.boot || back {
		r.boot, r.born, r.known = s.boot, now, time.Time{}
	}
	if s.renewal != r.renewal {
		r.renewal, r.life, r.renewed = s.renewal, now, true
		r.off.refuted = r.off.refuted || !r.off.asked.IsZero() && now.Sub(r.off.asked) >= t.quiet
	}
	if s.mark != r.mark || s.taint != r.taint {
		r.mark, r.taint, r.marked, r.deleted = s.mark, s.taint, now, map[types.UID]bool{}
	}
	r.identify(s)
}

// identify notes which machine the node is. Another one may take its place, and what the node's driver registers and
// what its kubelet reports may be seen in either order.
func (r *record) identify(s sight) {
	if s.doubt == "" && r.query != s.query {
		switch {
		case r.query.Node == s.query.Node:
		case r.query.Node != "" && r.system == s.system: // The kubelet has not reported yet.
			r.system, r.past = "", s.system
		default:
			r.system = s.system
		}
		r.query, r.known, r.newest, r.off = s.query, time.Time{}, machines.Machine{}, word{}
	}
	if r.system == "" && r.query.Node != "" && s.system != r.past {
		r.system = s.system
	}
}

// replaced reports whether the node is another machine than the one that is registered.
func (r *record) replaced(s sight) bool { return r.system != "" && s.system != r.system }

// note notes an answer that was asked for at an instant.
func (r *record) note(m machines.Machine, asked time.Time, t timing) {
	if rank(m.State) == notKnown || older(m, r.newest) {
		return
	}
	r.newest = m
	if m.State.Off() && (r.off.asked.IsZero() || m.Began.After(r.off.began)) {
		r.off = word{began: m.Began, asked: asked}
	}
	if m.State == machines.Running && asked.Sub(r.born) >= t.lag && !r.silent(asked, t.quiet) {
		r.known = m.Began
	}
}

// silent reports whether the node gave no sign of life for a while.
func (r *record) silent(now time.Time, quiet time.Duration) bool { return now.Sub(r.life) >= quiet }

// lively reports whether this process has just seen a sign of life. A node that it sees for the first time may be dead.
func (r *record) lively(now time.Time, quiet time.Duration) bool {
	return r.renewed && !r.silent(now, quiet)
}

// ignorant reports whether it is time to learn when the machine of a node that works began.
func (r *record) ignorant(now time.Time, lag time.Duration) bool {
	return r.query.Node != "" && r.known.IsZero() && now.Sub(r.born) >= lag
}

// due reports whether it is time to ask again: soon while something waits for the answer, else every now and then.
func (r *record) due(now time.Time, what act, t timing) bool {
	wait := askLater
	switch what {
	case ask: // Questions about what the provider has forgotten hold up those that it gathers with them.
		if r.silent(now, t.missed) && (!r.vague || !r.silent(now, time.Minute)) {
			wait = askAgain
		}
	case finish:
		if now.Sub(r.marked) < askLater {
			wait = askAgain
		}
	case learn, rest, hold, release:
	}
	return now.Sub(r.asked) >= wait
}

const (
	askAgain = 3 * period / 4 // at each look
	askLater = 10 * time.Second
)
