package pace

import (
	"sync"
	"time"
)

// Enter is for a request that takes some preparing: no more are prepared at a time than can be sent in the time given,
// so that none is prepared in vain. Leave is to be called once it was sent, or will not be. Kinds: Busy at once when
// there are too many.
func (p *Pacer) Enter(action string, within time.Duration) (leave func(), err error) {
	limit := p.of(action)
	p.mu.Lock()
	defer p.mu.Unlock()
	if float64(p.preparing[action]) >= float64(limit.Burst)+limit.PerSecond*within.Seconds() {
		return nil, late(action, limit.PerSecond)
	}
	p.preparing[action]++
	return sync.OnceFunc(func() { p.leave(action) }), nil
}

func (p *Pacer) leave(action string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.preparing[action]--
}
