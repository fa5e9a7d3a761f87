package powerloss

import (
	"slices"
	"sync"
)

// kind says what an entry of the log is.
type kind int

const (
	written  kind = iota // data was written to the drive
	zeroed               // zeros were written to the drive, or a range was discarded
	flushed              // the drive was told to make all earlier writes durable
	begun                // an operation of the script began
	answered             // an operation of the script was acknowledged
	looked               // after a loss somebody saw what became of what was in flight
)

// entry is one thing that happened.
type entry struct {
	kind   kind
	offset int64 // of a write, in bytes
	length int64 // of a write, in bytes
	data   []byte
	op     *operation
}

// onDrive reports whether the entry changes what is on the drive.
func (e entry) onDrive() bool { return e.kind == written || e.kind == zeroed }

// acknowledges reports whether somebody knows something from then on.
func (e entry) acknowledges() bool { return e.kind == answered || e.kind == looked }

// applyTo makes the write to the image.
func (e entry) applyTo(m image) {
	switch e.kind {
	case written:
		m.write(e.offset, e.data)
	case zeroed:
		m.zero(e.offset, e.length)
	default: // Nothing that the drive sees.
	}
}

// tear makes the write of those sectors that survive chooses. The sectors have so many bytes.
func (e entry) tear(m image, sector int64, survives func() bool) {
	for at := int64(0); at < e.length; {
		next := min(e.length, at+sector-(e.offset+at)%sector)
		if survives() {
			e.part(at, next).applyTo(m)
		}
		at = next
	}
}

// part is a part of the write.
func (e entry) part(from, to int64) entry {
	p := entry{kind: e.kind, offset: e.offset + from, length: to - from}
	if e.kind == written {
		p.data = e.data[from:to]
	}
	return p
}

// journal is everything that happened, in order: what the drive was asked, and what the script was told.
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
