package wait

import "time"

// pace decides when to look. Its methods are called under the Waiter's lock.
type pace struct {
	least, most time.Duration // between two looks
	usual       time.Duration // the assumed duration of a transition before one was seen
	seen        map[string]time.Duration
	early       map[string]int // how often in a row the first look found it done
	failures    int            // looks in a row that got no answer at all
}

// typical returns how long a transition usually takes. Recent durations count more.
func (p *pace) typical(transition string) time.Duration {
	if took, ok := p.seen[transition]; ok {
		return took
	}
	return p.usual
}

// first returns when to look first at a thing, counted from its beginning. That is a little before it is likely to be
// done, so that a faster cloud is noticed.
func (p *pace) first(transition string) time.Duration {
	return p.clamp(p.typical(transition) * 9 / 10)
}

// next returns how long to wait until the next look at a thing that has taken elapsed already.
func (p *pace) next(transition string, elapsed time.Duration) time.Duration {
	return p.clamp(max(p.typical(transition)/8, elapsed/4))
}

// gap returns the minimum time between two looks of any kind.
func (p *pace) gap() time.Duration { return min(p.least<<min(p.failures, 10), p.most) }

func (p *pace) clamp(d time.Duration) time.Duration { return min(max(d, p.gap()), p.most) }

// learn records that a thing was seen to be done after the time took, and whether the first look saw that. A thing that
// the first look finds done may have been done for long, which only an earlier look can tell. If that happens twice in
// a row, it is not by chance: earlier durations no longer count.
func (p *pace) learn(transition string, took time.Duration, first bool) {
	typical, weight := p.typical(transition), time.Duration(4)
	if p.early[transition]++; !first {
		p.early[transition] = 0
	} else if took /= 2; p.early[transition] > 1 {
		weight = 1
	}
	p.seen[transition] = typical + (took-typical)/weight
}

// heard records whether a look was answered.
func (p *pace) heard(answered bool) {
	if answered {
		p.failures = 0
		return
	}
	p.failures++
}
