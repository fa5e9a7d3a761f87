package faults

import (
	"net/http"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The Kinds. None forwards the request unchanged.
const (
	None        Kind = ""
	Throttle    Kind = "throttle"     // refused with the cloud's own error; it has no effect
	Fail        Kind = "fail"         // answered with an internal error; it has no effect
	FailAfter   Kind = "fail after"   // answered with an internal error after it has taken effect
	LoseRequest Kind = "lose request" // never arrives; the connection breaks
	LoseReply   Kind = "lose reply"   // takes effect; the connection breaks before the answer
	Duplicate   Kind = "duplicate"    // arrives twice, one after the other; the second answer is returned
	Delay       Kind = "delay"        // arrives after Rule.Delay, even if no client waits for it any longer
	Hang        Kind = "hang"         // never arrives, and the connection stays open until the client gives up
	Truncate    Kind = "truncate"     // takes effect; the answer is truncated
)

// Rule scripts a fault.
type Rule struct {
	Action string // of the request, such as AttachVolume; empty for any
	Skip   int    // the number of matching requests that pass first
	Times  int    // the number of requests that then meet the fault; 0 for all
	Kind   Kind
	Delay  time.Duration // for Kind Delay
}

// Dialect is the protocol of a cloud's API.
type Dialect struct {
	// Action returns the action of a request.
	Action func(r *http.Request, body []byte) string
	// Throttle and Fail answer as the API does when it is overloaded and when it is broken.
	Throttle, Fail http.HandlerFunc
}

// Event is the outcome of a request.
type Event struct {
	Action string
	Kind   Kind
	Status int // of the API's answer; 0 without one
}
