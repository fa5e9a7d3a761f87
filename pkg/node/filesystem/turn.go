package filesystem

import (
	"fmt"
	"sync/atomic"
	"time"
)

// turn is a turn to work on one device, waiting or taken.
type turn struct {
	tools *Tools
	path  string
	taken atomic.Bool
	tool  atomic.Pointer[process] // the running one; nil before the first
	read  atomic.Int64            // bytes read by this process before the first tool
	ended chan struct{}           // closed by release
	gone  chan struct{}           // closed by watch, at its end
}

// newTurn creates a waiting turn.
func newTurn(t *Tools, path string) *turn {
	n := &turn{tools: t, path: path, ended: make(chan struct{}), gone: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns[path] = n
	return n
}

// forget removes the turn from the turns of the Tools.
func (n *turn) forget() {
	n.tools.mu.Lock()
	defer n.tools.mu.Unlock()
	if n.tools.turns[n.path] == n {
		delete(n.tools.turns, n.path)
	}
}

// runs records the tool that works in the turn.
func (n *turn) runs(tool string, pid int) {
	if n != nil {
		n.tool.Store(&process{name: tool, pid: pid, since: time.Now()})
	}
}

// reads adds to the number of bytes that were read of the device.
func (n *turn) reads(bytes int64) {
	if n != nil {
		n.read.Add(bytes)
	}
}

// done returns what was done in the turn so far.
func (n *turn) done() done {
	d := n.tool.Load().done()
	d.read += uint64(n.read.Load())
	return d
}

// release gives the turn back for others to take.
func (n *turn) release() {
	if n == nil {
		return
	}
	close(n.ended)
	<-n.gone
	n.forget()
}

// watch yields the turn to others while its holder does nothing, as a tool that waits for a device which does not
// answer. It takes the turn back, if one is free, once the holder continues. It returns when the turn is over. watch
// counts checks, not time: a machine that stood still, or had no time for this process, had none for the tool either.
func (n *turn) watch() {
	t := n.tools
	defer close(n.gone)
	ticker := time.NewTicker(t.patience / looks)
	defer ticker.Stop()
	counts, before, still := true, done{}, 0
	for {
		select {
		case <-n.ended:
			n.over(counts)
			return
		case <-ticker.C:
		}
		still++
		if now := n.done(); now != before {
			before, still = now, 0
		}
		switch idle := still >= looks; {
		case counts && idle:
			counts = !t.giveUp()
		case !counts && !idle:
			counts = t.resume()
		}
	}
}

// over ends a turn, whether it counts or was yielded.
func (n *turn) over(counts bool) {
	n.tools.work.Add(-1)
	if counts {
		<-n.tools.free
		return
	}
	n.tools.idle.Add(-1)
}

// giveUp yields a turn to others, unless too many were yielded.
func (t *Tools) giveUp() bool {
	if t.idle.Add(1) > int64(mostIdle*cap(t.free)) {
		t.idle.Add(-1)
		return false
	}
	<-t.free
	return true
}

// resume takes a turn back if one is free.
func (t *Tools) resume() bool {
	select {
	case t.free <- struct{}{}:
		t.idle.Add(-1)
		return true
	default:
		return false
	}
}

// queue says why a turn has to wait.
func (t *Tools) queue() string {
	idle := t.idle.Load()
	text := fmt.Sprintf("%d others are being formatted or checked on this node, and at most %d may be at the same time",
		t.work.Load()-idle, cap(t.free))
	if idle > 0 {
		text += fmt.Sprintf(", besides %d whose devices do not answer", idle)
	}
	return text
}

// Progress says what works on a device, and how far it has come; an empty string if nothing does.
func (t *Tools) Progress(path string) string {
	t.mu.Lock()
	n := t.turns[path]
	t.mu.Unlock()
	if n == nil {
		return ""
	}
	switch tool := n.tool.Load(); {
	case tool != nil:
		return tool.String()
	case !n.taken.Load():
		return "it waits for its turn: " + t.queue()
	}
	return fmt.Sprintf("%d MiB are read of what may hold data", n.read.Load()>>20)
}
