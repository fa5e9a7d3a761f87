package filesystem

import (
	"bytes"
	"fmt"
	"os"
	"time"
)

// process is a running tool.
type process struct {
	name  string
	pid   int
	since time.Time
}

// done is what a process has done so far (proc(5)): any activity changes one of the fields.
type done struct {
	read, written uint64 // bytes, from and to devices
	calls         uint64 // of read(2), write(2) and similar
	ticks         uint64 // of processor time
}

// done returns what the process has done; zero if there is no process, or that is unknown.
func (p *process) done() (d done) {
	if p == nil {
		return done{}
	}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.pid)); err == nil {
		var skipped, reads, writes uint64
		_, _ = fmt.Sscanf(string(text), "rchar: %d\nwchar: %d\nsyscr: %d\nsyscw: %d\nread_bytes: %d\nwrite_bytes: %d\n",
			&skipped, &skipped, &reads, &writes, &d.read, &d.written)
		d.calls = reads + writes
	}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid)); err == nil {
		d.ticks = ticks(text)
	}
	return d
}

// ticks reads the processor time of a process from its stat: the 14th and 15th field. The second field, a name in
// parentheses, may contain anything.
func ticks(stat []byte) uint64 {
	const user = 14 - 3 // fields after the name
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < user+2 {
		return 0
	}
	var u, s uint64
	_, _ = fmt.Sscan(string(fields[user])+" "+string(fields[user+1]), &u, &s)
	return u + s
}

// String says what the tool has done.
func (p *process) String() string {
	const mib = 1 << 20
	d := p.done()
	return fmt.Sprintf("%s, process %d, runs for %s and has read %d MiB and written %d MiB", p.name, p.pid,
		time.Since(p.since).Round(time.Second), d.read/mib, d.written/mib)
}
