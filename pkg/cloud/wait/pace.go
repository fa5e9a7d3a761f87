package wait

import "time"

// pace is when it is worth looking. Its methods are called under the Waiter's lock.
type pace struct {
	least, most time.Duration // between two looks
	typical     time.Duration // what things were seen to take, the later ones counting more
	failures    int           // looks in a row that got no answer at all
}

// first is how long after its beginning a thing is looked at first: a little before it is likely to be done, so that a
// cloud that has become faster is noticed.
func (p *pace) first() time.Duration { return p.clamp(p.typical * 9 / 10) }

// next is how long to wait until the next look at a thing that has taken so long already.
func (p *pace) next(elapsed time.Duration) time.Duration { return p.clamp(max(p.typical/8, elapsed/4)) }

// gap is the least time between two looks of any kind.
func (p *pace) gap() time.Duration { return min(p.least<<min(p.failures, 10), p.most) }

func (p *pace) clamp(d time.Duration) time.Duration { return min(max(d, p.gap()), p.most) }

// learn takes in that a thing was seen to be done so long after its beginning, in the first look at it or a later one.
// What the first look finds done may have been done for long: only looking earlier can tell.
func (p *pace) learn(took time.Duration, first bool) {
	if first {
		took /= 2
	}
	p.typical += (took - p.typical) / 4
}

// heard takes in whether a look was answered.
func (p *pace) heard(answered bool) {
	if answered {
		p.failures = 0
		return
	}
	p.failures++
}
