package powerloss

import (
	"slices"
	"sync"
)

// kind is the kind of a log entry.
type kind int

const (
	written  kind = iota // data was written to the drive
	zeroed               // zeros were written to the drive, or a range was discarded
	flushed              // the drive was told to make all earlier writes durable
	begun                // an operation of the script began
	answered             // an operation of the script was acknowledged
	looked               // after a loss the state of the operations in flight was observed
)

// entry is one event.
type entry struct {
	kind   kind
	offset int64 // of a write, in bytes
	length int64 // of a write, in bytes
	data   []byte
	op     *operation
}

// onDrive reports whether the entry changes the drive's content.
func (e entry) onDrive() bool { return e.kind == written || e.kind == zeroed }

// acknowledges reports whether the state becomes known with the entry.
func (e entry) acknowledges() bool { return e.kind == answered || e.kind == looked }

// applyTo applies the write to the image.
func (e entry) applyTo(m image) {
	switch e.kind {
	case written:
		m.write(e.offset, e.data)
	case zeroed:
		m.zero(e.offset, e.length)
	default: // The drive is not affected.
	}
}

// tear writes only the sectors that survives selects to the image. sector is their size in bytes.
func (e entry) tear(m image, sector int64, survives func() bool) {
	for at := int64(0); at < e.length; {
		next := min(e.length, at+sector-(e.offset+at)%sector)
		if survives() {
			e.part(at, next).applyTo(m)
		}
		at = next
	}
}

// part returns a part of the write.
func (e entry) part(from, to int64) entry {
	p := entry{kind: e.kind, offset: e.offset + from, length: to - from}
	if e.kind == written {
		p.data = e.data[from:to]
	}
	return p
}

// journal records all events in order: the drive's requests, and the script's results.
type journal struct {
	mu      sync.Mutex
	entries []entry
}

func (j *journal) add(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
}

func (j *journal) all() []entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.entries)
}
