package wait

import "time"

// pace is when it is worth looking. Its methods are called under the Waiter's lock.
type pace struct {
	least, most time.Duration // between two looks
	usual       time.Duration // what any transition is taken to need before it was seen
	seen        map[string]time.Duration
	early       map[string]int // how often in a row the first look found it done
	failures    int            // looks in a row that got no answer at all
}

// typical is what a transition was seen to take, the later times counting more.
func (p *pace) typical(transition string) time.Duration {
	if took, ok := p.seen[transition]; ok {
		return took
	}
	return p.usual
}

// first is how long after its beginning a thing is looked at first: a little before it is likely to be done, so that a
// cloud that has become faster is noticed.
func (p *pace) first(transition string) time.Duration {
	return p.clamp(p.typical(transition) * 9 / 10)
}

// next is how long to wait until the next look at a thing that has taken so long already.
func (p *pace) next(transition string, elapsed time.Duration) time.Duration {
	return p.clamp(max(p.typical(transition)/8, elapsed/4))
}

// gap is the least time between two looks of any kind.
func (p *pace) gap() time.Duration { return min(p.least<<min(p.failures, 10), p.most) }

func (p *pace) clamp(d time.Duration) time.Duration { return min(max(d, p.gap()), p.most) }

// learn takes in that a thing was seen to be done so long after its beginning, in the first look at it or a later one.
// What the first look finds done may have been done for long: only looking earlier can tell. When that happens twice in
// a row, it is no chance: what has been seen so far counts no more.
func (p *pace) learn(transition string, took time.Duration, first bool) {
	typical, weight := p.typical(transition), time.Duration(4)
	if p.early[transition]++; !first {
		p.early[transition] = 0
	} else if took /= 2; p.early[transition] > 1 {
		weight = 1
	}
	p.seen[transition] = typical + (took-typical)/weight
}

// heard takes in whether a look was answered.
func (p *pace) heard(answered bool) {
	if answered {
		p.failures = 0
		return
	}
	p.failures++
}
