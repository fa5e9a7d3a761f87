package history

import (
	"sync"
	"time"
)

// Op is the operation of a call.
type Op string

// The Ops.
const (
	Create Op = "create"
	Delete Op = "delete"
	Attach Op = "attach"
	Detach Op = "detach"
)

// Call is one call. A retry is another Call.
type Call struct {
	Op     Op
	Name   string // of the volume
	Volume string // its handle; for Create the returned one
	Node   string // for Attach and Detach
	Limit  time.Duration
	// Contended is set if others attach and detach the same volume at the same time, so that success does not imply a
	// current state.
	Contended bool

	Began, Ended time.Time
	Done         bool // it succeeded
}

// State is the true state of a volume from an instant on.
type State struct {
	At     time.Time
	Volume string
	There  bool              // it exists, and is neither being deleted nor broken
	Usable bool              // it can be attached
	Nodes  map[string]string // the state of its attachment, by node; "attached" once complete
	Shared bool              // it may be attached to several nodes
}

// Attached is the state of a complete attachment.
const Attached = "attached"

// History records the calls of any number of callers.
type History struct {
	mu    sync.Mutex
	calls []Call
}

// Note makes a call and records it. The call returns the volume's handle if it creates one.
func (h *History) Note(c Call, call func() (volume string, err error)) error {
	c.Began = time.Now()
	volume, err := call()
	c.Ended, c.Done = time.Now(), err == nil
	if volume != "" {
		c.Volume = volume
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
	return err
}

// Calls returns the number of calls, and the number of failed ones.
func (h *History) Calls() (all, failed int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		if !c.Done {
			failed++
		}
	}
	return len(h.calls), failed
}
