package recycler

import (
	"sync"
	"time"
)

// memory is what the process knows of volumes beside their records: since when something is so, by its own clock, and
// what it said last. It may be lost.
type memory struct {
	now func() time.Time

	mu      sync.Mutex
	volumes map[string]*past
}

type past struct {
	since map[string]time.Time
	said  string
	why   string    // what it waits for, nothing if it does not wait
	from  time.Time // since when
}

func newMemory(now func() time.Time) *memory { return &memory{now: now, volumes: map[string]*past{}} }

func (m *memory) of(volume string) *past {
	if m.volumes[volume] == nil {
		m.volumes[volume] = &past{since: map[string]time.Time{}}
	}
	return m.volumes[volume]
}

// since is for how long something has been so.
func (m *memory) since(volume, what string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(volume)
	if _, known := p.since[what]; !known {
		p.since[what] = m.now()
	}
	return m.now().Sub(p.since[what])
}

// reset forgets since when something was so.
func (m *memory) reset(volume, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of(volume).since, what)
}

// waits notes what a volume waits for, if its next step is to wait, and returns for how long it has waited for that.
func (m *memory) waits(volume string, next step, why string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(volume)
	if isWaiting := next == wait || next == work; !isWaiting {
		why = ""
	}
	if p.why != why || p.from.IsZero() {
		p.why, p.from = why, m.now()
	}
	return m.now().Sub(p.from)
}

// isNew notes what is said about a volume, and reports whether it is not what was said last.
func (m *memory) isNew(volume, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(volume)
	before := p.said
	p.said = text
	return before != text
}

func (m *memory) forget(volume string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.volumes, volume)
}
