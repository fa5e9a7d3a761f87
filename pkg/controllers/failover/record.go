package failover

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/machines"
)

// record is a manager's memory of a node. All times are from the process's own clock.
type record struct {
	uid, boot string
	// last query that named a machine: a driver that stops removes its registration
	query  machines.Query
	system string // its machine's ID from the firmware; empty if not known
	past   string // the previous machine's ID from the firmware, while the Node may still show it

	renewal string    // last seen time in the Lease
	life    time.Time // when the last sign of life was seen, or the node first seen
	renewed bool      // this process has seen a sign of life
	born    time.Time // when the node was seen to have booted or come back

	// start time of the machine, if an answer that cannot be outdated said that it runs; else zero
	known  time.Time
	newest machines.Machine // the newest answer
	off    word             // first answer that the machine is off, for its latest start
	asked  time.Time        // when the last question was asked
	vague  bool             // the answer had no information

	mark    mark
	words   []string           // values of the out-of-service taints
	marked  time.Time          // when our taint, or the newest value of a person's, was first seen
	deleted map[types.UID]bool // pods deleted since then

	mute   bool    // the lack of answers about a working node was logged
	told   verdict // last verdict told about the node
	toldAt time.Time
}

// word is an answer that a machine is off, for one start of the machine.
type word struct {
	began, asked time.Time // the start, and when the answer was first requested
	refuted      bool      // the node stayed alive long after it: it is wrong or about another machine
}

// see records the state of a node. An object with another UID is another node.
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
	r.heed(s, now)
	r.identify(s)
}

// heed records the taints of the node. Only a value that no taint had at the last look is a person's new word that the
// machine is off. Another effect or order of the taints is none, nor is the end of our taint beside a person's.
func (r *record) heed(s sight, now time.Time) {
	isNew := func(value string) bool { return !slices.Contains(r.words, value) }
	if s.mark == theirs && slices.ContainsFunc(s.words, isNew) || s.mark != theirs && s.mark != r.mark {
		r.marked, r.deleted = now, map[types.UID]bool{}
	}
	r.mark, r.words = s.mark, s.words
}

// identify records the machine of the node. Another machine may replace it, and the driver's registration and the
// kubelet's report may be seen in either order.
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

// replaced reports whether the node runs on another machine than the registered one.
func (r *record) replaced(s sight) bool { return r.system != "" && s.system != r.system }

// note records an answer. Asked is when it was requested.
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

// silent reports whether the node has given no sign of life for at least quiet.
func (r *record) silent(now time.Time, quiet time.Duration) bool { return now.Sub(r.life) >= quiet }

// lively reports whether this process has recently seen a sign of life. A node that it sees for the first time may be
// dead.
func (r *record) lively(now time.Time, quiet time.Duration) bool {
	return r.renewed && !r.silent(now, quiet)
}

// ignorant reports whether it is time to learn the start time of a working node's machine.
func (r *record) ignorant(now time.Time, lag time.Duration) bool {
	return r.query.Node != "" && r.known.IsZero() && now.Sub(r.born) >= lag
}

// due reports whether it is time to ask again: in the next pass while an action depends on the answer, else after
// askLater.
func (r *record) due(now time.Time, what act, t timing) bool {
	wait := askLater
	switch what {
	case ask: // Questions about forgotten machines delay others in the same batch.
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
	askAgain = 3 * period / 4 // in each pass
	askLater = 10 * time.Second
)
