package failover

import (
	"time"

	"github.com/stowage-csi/stowage/pkg/machines"
)

// mark is who has put a node out of service.
type mark int

const (
	none mark = iota
	ours
	theirs // a person's, or another program's
)

// sight is a node as Kubernetes shows it.
type sight struct {
	name, uid string
	ready     bool
	unheard   bool   // kube-controller-manager hears nothing of its kubelet
	going     bool   // the Node object is being deleted
	boot      string // of the operating system, as the kubelet reports it
	system    string // the machine, as its firmware calls it
	// the machine, as its provider calls it
	providerID string
	renewal    string        // of the Lease: another one is a sign of life; empty without a Lease
	duration   time.Duration // of the Lease
	mark       mark
	taint      string // its values
	inUse      int    // volumes that the kubelet reports in use
	first      string // of them
	identity
}

// identity is which machine a node is.
type identity struct {
	query machines.Query
	doubt string // why the machine is not known, in words for people
}

// act is what is done about a node.
type act string

const (
	rest    act = "rest"
	learn   act = "learn"   // ask, so that the answer is known before there is trouble
	ask     act = "ask"     // ask whether the machine is off
	finish  act = "finish"  // it has just been put out of service: its pods go
	hold    act = "hold"    // it is out of service, and stays so
	release act = "release" // it works again
)

// plan decides what comes next for a node, as it is seen and remembered.
func plan(s sight, r *record, now time.Time, t timing) act {
	silent := r.silent(now, t.missed)
	switch {
	case s.mark == theirs:
		return rest
	case s.mark == ours && s.ready && s.inUse == 0 && r.lively(now, t.quiet) && r.life.After(r.marked):
		return release
	case s.mark == ours && silent && now.Sub(r.marked) < t.lag+time.Minute: // Kubernetes deletes its pods, too.
		return finish
	case s.mark == ours:
		return hold
	case (silent || !s.ready) && !s.going:
		return ask
	case r.ignorant(now, t.lag):
		return learn
	}
	return rest
}

// timing is how long things take, or may take.
type timing struct {
	// a node without a sign of life for so long has not renewed its Lease when it should have
	missed time.Duration
	// a node without a sign of life for so long is in trouble, and may have started anew when it is back
	quiet time.Duration
	lag   time.Duration // how old what a provider says may be
	// a person's taint counts for more than the kubelet's last word when its node is silent for so long
	settled time.Duration
}

// verdict is what an answer of the provider means.
type verdict string

// Each is a reason too, for events and metrics.
const (
	proven       verdict = "Proven"
	running      verdict = "Running"      // the machine runs, and the node is silent all the same
	stopping     verdict = "Stopping"     // it may still write
	outdated     verdict = "Outdated"     // the answer is older than one before it
	refuted      verdict = "Refuted"      // the node lived on when the same was said before
	premature    verdict = "Premature"    // the answer may be older than the node's last sign of life
	alive        verdict = "Alive"        // the node itself says that it lives
	unknown      verdict = "Unknown"      // there is no answer, or none that says anything
	unidentified verdict = "Unidentified" // it is not known which machine the node is
	inUse        verdict = "InUse"        // it works again, and cannot be put into service yet
	unwritten    verdict = "Unwritten"    // the machine is off, and the taint cannot be written
)

// judge says what an answer means that was asked for at an instant.
func judge(m machines.Machine, asked time.Time, r *record, t timing) verdict {
	switch {
	case m.State == machines.Missing:
		return unknown
	case older(m, r.newest):
		return outdated
	case m.State == machines.Running:
		return running
	case m.State == machines.Stopping:
		return stopping
	case !m.State.Off():
		return unknown
	case r.off.refuted && !m.Began.After(r.off.began):
		return refuted
	case !r.silent(asked, t.missed): // The provider contradicts the node.
		return alive
	case asked.Sub(r.life) >= t.lag:
		return proven
	case !r.known.IsZero() && !m.Began.Before(r.known):
		return proven
	}
	return premature
}

// older reports whether an answer is of an earlier time than another. A machine is started, stops and ends in this
// order.
func older(m, than machines.Machine) bool {
	if !m.Began.Equal(than.Began) {
		return m.Began.Before(than.Began)
	}
	return rank(m.State) < rank(than.State)
}

func rank(s machines.State) int {
	switch s {
	case machines.Running:
		return 1
	case machines.Stopping:
		return 2
	case machines.Stopped:
		return 3
	case machines.Terminated:
		return 4
	case machines.Missing:
	}
	return notKnown
}

const notKnown = 5 // What is not known is not older than anything.
