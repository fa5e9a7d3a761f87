package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Check returns the violations, one sentence each. states are all states that all volumes ever had. A volume that
// exists at the end is leaked. With crashes, an attachment may end without a call: a request of a dead process may
// arrive after the next process has attached the volume again. For the same reason, an attachment may begin while the
// volume is being detached.
func (h *History) Check(states []State, crashes bool) (wrong []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	j := &judge{crashes: crashes, calls: slices.Clone(h.calls), past: map[string][]State{}}
	slices.SortStableFunc(j.calls, func(a, b Call) int { return a.Ended.Compare(b.Ended) })
	slices.SortStableFunc(states, func(a, b State) int { return a.At.Compare(b.At) })
	for _, s := range states {
		j.past[s.Volume] = append(j.past[s.Volume], s)
	}
	for _, c := range j.calls {
		j.late(c)
		if c.Done {
			j.verdict(c)
		}
	}
	j.names()
	for volume, past := range j.past {
		j.volume(volume, past)
	}
	slices.Sort(j.wrong)
	return slices.Compact(j.wrong)
}

// judge is the state of one Check.
type judge struct {
	crashes bool
	calls   []Call             // by their end
	past    map[string][]State // by volume, oldest first
	wrong   []string
}

func (j *judge) blame(format string, args ...any) {
	j.wrong = append(j.wrong, fmt.Sprintf(format, args...))
}

// late finds a call that exceeded its limit.
func (j *judge) late(c Call) {
	if took := c.Ended.Sub(c.Began); took > c.Limit {
		j.blame("%s %s took %v and had %v", c.Op, cmp.Or(c.Volume, c.Name), took, c.Limit)
	}
}

// at returns the states at an instant. Simulated time stands still during work, so that an instant may have several.
func (j *judge) at(volume string, when time.Time) []State {
	found := []State{{}} // before its first state
	for _, s := range j.past[volume] {
		switch {
		case s.At.Before(when):
			found = []State{s}
		case s.At.Equal(when):
			found = append(found, s)
		}
	}
	return found
}

// verdict compares a call's result with the true state at that moment.
func (j *judge) verdict(c Call) {
	then := j.at(c.Volume, c.Ended)
	last := then[len(then)-1]
	switch right := func(want func(State) bool) bool { return slices.ContainsFunc(then, want) }; c.Op {
	case Create:
		if !right(func(s State) bool { return s.Usable }) && !j.deleting(c.Volume, c.Ended) {
			j.blame("create %s returned %s, which could not be used then", c.Name, c.Volume)
		}
	case Delete:
		if !right(func(s State) bool { return !s.There }) {
			j.blame("delete %s succeeded, and it was there then", c.Volume)
		}
	case Attach:
		whole := func(s State) bool { return len(s.Nodes) == 1 && s.Nodes[c.Node] == Attached }
		if !c.Contended && !j.crashes && !right(whole) {
			j.blame("attach %s to %s succeeded, and it was attached to %v then", c.Volume, c.Node, last.Nodes)
		}
	case Detach:
		if !c.Contended && !j.stray(c) && !right(func(s State) bool { return s.Nodes[c.Node] == "" }) {
			j.blame("detach %s from %s succeeded, and it was attached to %v then", c.Volume, c.Node, last.Nodes)
		}
	}
}

// stray reports whether the attachment that remains after a detachment began during that call, maybe by a dead process.
func (j *judge) stray(c Call) bool {
	attached, since := false, time.Time{}
	for _, s := range j.past[c.Volume] {
		if s.At.After(c.Ended) {
			break
		}
		if has := s.Nodes[c.Node] != ""; has != attached {
			attached, since = has, s.At
		}
	}
	return j.crashes && since.After(c.Began)
}

// deleting reports whether the volume's deletion had been requested by then.
func (j *judge) deleting(volume string, by time.Time) bool {
	return slices.ContainsFunc(j.calls,
		func(c Call) bool { return c.Op == Delete && c.Volume == volume && !c.Began.After(by) })
}

// kept finds an attachment that ended although no caller had requested that after it knew of the attachment.
func (j *judge) kept(volume string, past []State) {
	for _, a := range j.calls {
		if a.Op != Attach || !a.Done || a.Contended || a.Volume != volume {
			continue
		}
		released, ever := j.released(volume, a.Ended)
		for _, s := range past {
			if s.At.After(a.Ended) && (!ever || s.At.Before(released)) && s.Nodes[a.Node] != Attached {
				j.blame("%s was attached to %s for somebody and is %q there", volume, a.Node, s.Nodes[a.Node])
				break
			}
		}
	}
}

// released returns the time of the next request to end a volume's attachments.
func (j *judge) released(volume string, after time.Time) (at time.Time, ever bool) {
	for _, c := range j.calls {
		if (c.Op == Detach || c.Op == Delete) && c.Volume == volume && !c.Began.Before(after) &&
			(!ever || c.Began.Before(at)) {
			at, ever = c.Began, true
		}
	}
	return at, ever
}

// names finds a name under which two volumes were returned at the same time.
func (j *judge) names() {
	holder := map[string]string{}
	for _, c := range j.calls {
		if c.Op != Create || !c.Done {
			continue
		}
		if before := holder[c.Name]; before != "" && before != c.Volume && !j.deleting(before, c.Ended) {
			j.blame("create %s returned %s, and before that %s, whose deletion nobody had asked for", c.Name, c.Volume, before)
		}
		holder[c.Name] = c.Volume
	}
}

// volume checks the states of a volume.
func (j *judge) volume(volume string, past []State) {
	handedOut := slices.IndexFunc(j.calls, func(c Call) bool { return c.Op == Create && c.Done && c.Volume == volume })
	for i, s := range past {
		if len(s.Nodes) > 1 && !s.Shared {
			j.blame("%s was attached to %v at a time", volume, s.Nodes)
		}
		if i > 0 && past[i-1].There && !s.There && handedOut >= 0 && !j.calls[handedOut].Ended.After(s.At) &&
			!j.deleting(volume, s.At) {
			j.blame("%s was handed out and went without anybody's asking", volume)
		}
	}
	if !j.crashes {
		j.kept(volume, past)
	}
	if past[len(past)-1].There {
		j.blame("%s was leaked", volume)
	}
}
