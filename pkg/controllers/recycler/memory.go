package recycler

import (
	"sync"
	"time"
)

// memory holds the process's knowledge of volumes beyond their records: since when a condition holds, by its own clock,
// and the last event. It may be lost.
type memory struct {
	now func() time.Time

	mu      sync.Mutex
	volumes map[string]*past
}

type past struct {
	since map[string]time.Time
	said  string    // the text of the last event
	at    time.Time // of the last event
	why   string    // what the volume waits for, or ""
	from  time.Time // when the wait began
}

func newMemory(now func() time.Time) *memory { return &memory{now: now, volumes: map[string]*past{}} }

func (m *memory) of(volume string) *past {
	if m.volumes[volume] == nil {
		m.volumes[volume] = &past{since: map[string]time.Time{}}
	}
	return m.volumes[volume]
}

// since returns for how long a condition has been known to hold.
func (m *memory) since(volume, what string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(volume)
	if _, known := p.since[what]; !known {
		p.since[what] = m.now()
	}
	return m.now().Sub(p.since[what])
}

// reset forgets since when a condition holds.
func (m *memory) reset(volume, what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of(volume).since, what)
}

// waits notes what a volume waits for, if its next step is to wait, and returns how long it has waited for that.
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

// reminder is the pause before an event with the same text. The API server deletes events after an hour.
const reminder = 30 * time.Minute

// isNew stores the text of an event about a volume, and reports whether it differs from the previous one, or that was
// long ago.
func (m *memory) isNew(volume, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.of(volume)
	now := m.now()
	if p.said == text && now.Sub(p.at) < reminder {
		return false
	}
	p.said, p.at = text, now
	return true
}

func (m *memory) forget(volume string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.volumes, volume)
}
