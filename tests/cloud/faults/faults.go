package faults

import (
	"net/http"
	"time"
)

// Kind is what is done to a request.
type Kind string

// The Kinds. None passes the request on as it is.
const (
	None        Kind = ""
	Throttle    Kind = "throttle"     // refused with the cloud's own error; it has no effect
	Fail        Kind = "fail"         // answered with an internal error; it has no effect
	FailAfter   Kind = "fail after"   // answered with an internal error after it has had its effect
	LoseRequest Kind = "lose request" // never arrives; the connection breaks
	LoseReply   Kind = "lose reply"   // has its effect; the connection breaks before the answer
	Duplicate   Kind = "duplicate"    // arrives twice, one after the other; the second answer is returned
	Delay       Kind = "delay"        // arrives after Rule.Delay, also when nobody waits for it any longer
	Hang        Kind = "hang"         // never arrives, and the connection stays open until the client gives up
	Truncate    Kind = "truncate"     // has its effect; the answer is cut off in the middle
)

// Rule scripts a fault.
type Rule struct {
	Action string // of the request, such as AttachVolume; empty for every one
	Skip   int    // so many such requests pass first
	Times  int    // and so many meet the fault; 0 for all
	Kind   Kind
	Delay  time.Duration // for Kind Delay
}

// Dialect is how a cloud's API speaks.
type Dialect struct {
	// Action says what a request asks for.
	Action func(r *http.Request, body []byte) string
	// Throttle and Fail answer as the API does when it is asked too often and when it is broken.
	Throttle, Fail http.HandlerFunc
}

// Event is what became of a request.
type Event struct {
	Action string
	Kind   Kind
	Status int // of the answer that the API gave; 0 without one
}
