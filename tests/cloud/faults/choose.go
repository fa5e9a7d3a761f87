package faults

import (
	"math/rand/v2"
	"time"
)

// Script adds rules. If several apply to a request, the first is used.
func (p *Proxy) Script(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rule := range rules {
		p.rules = append(p.rules, &rule)
	}
}

// Random gives each request without an applicable rule a chance, in a thousand, of each Kind of fault. Delays are up to
// longest.
func (p *Proxy) Random(perThousand map[Kind]int, longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chances, p.longest = perThousand, longest
}

// Seed makes the next requests meet the faults of a seed, as in a new Proxy.
func (p *Proxy) Seed(seed uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.random = stream(seed)
}

func stream(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// Stop ends all faults.
func (p *Proxy) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.chances = nil, nil
}

// choose returns the fault of a request.
func (p *Proxy) choose(action string) (Kind, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, rule := range p.rules {
		if rule.Action != "" && rule.Action != action || rule.Times < 0 {
			continue
		}
		if rule.Skip > 0 {
			rule.Skip--
			continue
		}
		if rule.Times == 1 {
			rule.Times = -1
		} else if rule.Times > 1 {
			rule.Times--
		}
		return rule.Kind, rule.Delay
	}
	return p.chance()
}

// chance draws one number for a request, so that a run with the same seed and order of requests is repeatable.
func (p *Proxy) chance() (Kind, time.Duration) {
	draw := p.random.IntN(1000)
	for _, kind := range []Kind{Throttle, Fail, FailAfter, LoseRequest, LoseReply, Duplicate, Delay, Hang, Truncate} {
		if draw -= p.chances[kind]; draw < 0 {
			return kind, time.Duration(p.random.Int64N(int64(p.longest) + 1))
		}
	}
	return None, 0
}
