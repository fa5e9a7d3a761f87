package history

import (
	"sync"
	"time"
)

// Op is what a call asks for.
type Op string

// The Ops.
const (
	Create Op = "create"
	Delete Op = "delete"
	Attach Op = "attach"
	Detach Op = "detach"
)

// Call is one call. Who asks again makes another one.
type Call struct {
	Op     Op
	Name   string // of the volume
	Volume string // its handle; of Create what was returned
	Node   string // for Attach and Detach
	Limit  time.Duration
	// Contended says that others attach and detach the same volume at the same time, so that success tells nothing about
	// now.
	Contended bool

	Began, Ended time.Time
	Done         bool // it succeeded
}

// State is what was true of a volume from an instant on.
type State struct {
	At     time.Time
	Volume string
	There  bool              // it is, and is neither being deleted nor broken
	Usable bool              // it can be attached
	Nodes  map[string]string // how it is attached, by node; "attached" when it is whole
	Shared bool              // it may be attached to several nodes
}

// Attached is the state of an attachment that is whole.
const Attached = "attached"

// History is what was asked for, by any number of callers.
type History struct {
	mu    sync.Mutex
	calls []Call
}

// Note makes a call and notes it. The call returns the volume's handle where it makes one.
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

// Calls returns how many calls there were, and how many of them did not succeed.
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
