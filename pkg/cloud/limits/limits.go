package limits

import (
	"context"
	"sync"
	"time"
)

// Machine is what a cloud reports about a node.
type Machine struct {
	// Attachments is how many attachments the machine type allows; 0 if unknown.
	Attachments int
	// SharedWithInterfaces reports whether each network interface takes one of them. Interfaces counts those for which the
	// cloud has not left room in its number.
	SharedWithInterfaces bool
	Interfaces           int
	// ForeignDisks is how many attached disks are not the backend's, including the root disk.
	ForeignDisks int
	// Reserved is how many attachments an operator wants to keep free.
	Reserved int
}

// Volumes returns how many disks the backend may have attached; 0 if unknown. If others take all attachments, it
// returns 1, because 0 means that there is no limit (CSI, NodeGetInfo).
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

// Refreshed caches a node's Machine up to a given age, or longer if the cloud does not answer.
type Refreshed struct {
	look func(ctx context.Context) (Machine, error)
	age  time.Duration

	mu    sync.Mutex // guards the fields below, not the look
	known *Machine
	at    time.Time
}

// Refresh returns a Refreshed that looks again after the age.
func Refresh(age time.Duration, look func(ctx context.Context) (Machine, error)) *Refreshed {
	return &Refreshed{look: look, age: age}
}

// Get returns the known Machine. If a look fails, it returns the previous one. It returns the error, with its Kind,
// only if there is none.
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
		return *r.known, nil // An old answer is nearer to the truth than none.
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
