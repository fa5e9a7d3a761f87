package failover

import (
	"time"

	"github.com/stowage-csi/stowage/pkg/machines"
)

// mark says who has put a node out of service.
type mark int

const (
	none mark = iota
	ours
	theirs // a person's, or another program's
)

// sight is the state of a node as seen in Kubernetes.
type sight struct {
	name, uid string
	ready     bool
	unheard   bool   // kube-controller-manager hears nothing from its kubelet
	going     bool   // the Node object is being deleted
	boot      string // boot ID, from the kubelet
	system    string // ID of the machine, from its firmware
	// ID of the machine, from its provider
	providerID string
	renewal    string        // time in the Lease: a change is a sign of life; empty without a Lease
	duration   time.Duration // of the Lease
	mark       mark
	words      []string // values of the out-of-service taints
	inUse      int      // volumes that the kubelet reports in use
	first      string   // one of these volumes
	identity
}

// identity identifies the machine of a node.
type identity struct {
	query machines.Query
	doubt string // why the machine is not known, for messages
}

// act is the action for a node.
type act string

const (
	rest    act = "rest"
	learn   act = "learn"   // ask about the machine of a working node, in advance
	ask     act = "ask"     // ask whether the machine is off
	finish  act = "finish"  // the node has just been put out of service: delete its pods
	hold    act = "hold"    // the node is out of service, and stays so
	release act = "release" // the node works again: put it into service
)

// plan decides on the action for a node, from its state and record.
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

// timing holds the delays that decisions depend on.
type timing struct {
	// a node silent for this long has missed a renewal of its Lease
	missed time.Duration
	// a node silent for this long is in trouble, and may have rebooted when it is back
	quiet time.Duration
	lag   time.Duration // maximum age of a provider's answer
	// a person's taint overrides the kubelet's last report once its node is silent for this long
	settled time.Duration
}

// verdict is the meaning of a provider's answer.
type verdict string

// A verdict is also the action of an event about it.
const (
	proven       verdict = "Proven"
	running      verdict = "Running"      // the machine runs, although the node is silent
	stopping     verdict = "Stopping"     // the machine may still write
	outdated     verdict = "Outdated"     // the answer is older than an earlier answer
	refuted      verdict = "Refuted"      // the node stayed alive after the same answer before
	premature    verdict = "Premature"    // the answer may be older than the node's last sign of life
	alive        verdict = "Alive"        // the node gives signs of life
	unknown      verdict = "Unknown"      // no answer, or one without information
	unidentified verdict = "Unidentified" // the node's machine is not known
	inUse        verdict = "InUse"        // the node works again, and cannot be put into service yet
	unwritten    verdict = "Unwritten"    // the machine is off, and the taint cannot be written
)

// judge returns the meaning of an answer. Asked is when it was requested.
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

// older reports whether an answer describes an earlier time than another. A machine is started, stopped and terminated
// in this order.
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

const notKnown = 5 // An unknown state is never older.
