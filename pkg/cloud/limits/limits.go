package limits

import (
	"context"
	"sync"
	"time"
)

// Machine is what a cloud says about a node.
type Machine struct {
	// Attachments is how many attachments the node's kind allows; 0 when that is not known.
	Attachments int
	// SharedWithInterfaces says that each network interface takes one of them.
	SharedWithInterfaces bool
	Interfaces           int
	// ForeignDisks is how many disks are attached that are not the backend's, the root disk included.
	ForeignDisks int
	// Reserved is how many attachments an operator wants to keep free.
	Reserved int
}

// Volumes is how many disks the backend may have attached; 0 when that is not known. A node whose attachments are all
// taken by others still answers 1, because 0 means that there is no limit (CSI, NodeGetInfo).
func (m Machine) Volumes() int64 {
	if m.Attachments == 0 {
		return 0
	}
	left := m.Attachments - m.ForeignDisks - m.Reserved
	if m.SharedWithInterfaces {
		left -= m.Interfaces
	}
	return int64(max(left, 1))
}

// Refreshed is what is known of a node, no older than a given age unless the cloud does not answer.
type Refreshed struct {
	look func(ctx context.Context) (Machine, error)
	age  time.Duration

	mu    sync.Mutex // guards what follows, not the look
	known *Machine
	at    time.Time
}

// Refresh makes a Refreshed that looks again after the age.
func Refresh(age time.Duration, look func(ctx context.Context) (Machine, error)) *Refreshed {
	return &Refreshed{look: look, age: age}
}

// Get returns what is known. A look that fails leaves what was known before; only the very first failure is returned,
// with its Kind.
func (r *Refreshed) Get(ctx context.Context) (Machine, error) {
	if m := r.fresh(); m != nil {
		return *m, nil
	}
	m, err := r.look(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.known, r.at = &m, time.Now()
		return m, nil
	}
	if r.known != nil {
		return *r.known, nil // an old answer is nearer to the truth than none
	}
	return Machine{}, err
}

func (r *Refreshed) fresh() *Machine {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || time.Since(r.at) > r.age {
		return nil
	}
	return r.known
}
