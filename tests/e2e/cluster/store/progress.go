package store

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// every is the interval between progress reports.
const every = 15 * time.Second

// tail is the number of output lines that are kept for an error.
const tail = 30

// Progress receives the output of a command that builds an entry, counts its lines, and periodically reports the
// progress.
type Progress struct {
	out   io.Writer
	label string
	name  string

	mu      sync.Mutex
	begun   time.Time
	lines   int
	last    [][]byte
	partial []byte

	ended chan struct{}
	group sync.WaitGroup
}

func newProgress(out io.Writer, label, name string) *Progress {
	p := &Progress{out: out, label: label, name: name, begun: time.Now(), ended: make(chan struct{})}
	p.group.Go(p.show)
	return p
}

func (p *Progress) show() {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-tick.C:
			p.print()
		}
	}
}

func (p *Progress) print() {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := ""
	if len(p.last) > 0 {
		at = fmt.Sprintf(", %d steps, now at %s", p.lines, p.last[len(p.last)-1])
	}
	fmt.Fprintf(p.out, "%s: making %s: %v%s\n", p.label, p.name, time.Since(p.begun).Round(time.Second), at)
}

// Write receives a piece of output.
func (p *Progress) Write(piece []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partial = append(p.partial, piece...)
	for {
		line, rest, ok := bytes.Cut(p.partial, []byte("\n"))
		if !ok {
			return len(piece), nil
		}
		p.lines++
		p.last = append(p.last, bytes.Clone(line))
		p.last = p.last[max(0, len(p.last)-tail):]
		p.partial = bytes.Clone(rest)
	}
}

// Tail returns the last lines of the output.
func (p *Progress) Tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(bytes.Join(append(p.last, p.partial), []byte("\n")))
}

func (p *Progress) stop() {
	close(p.ended)
	p.group.Wait()
}

func (p *Progress) done() {
	fmt.Fprintf(p.out, "%s: made %s in %v\n", p.label, p.name, time.Since(p.begun).Round(100*time.Millisecond))
}
