package pace

import (
	"sync"
	"time"
)

// Enter is called before a request that takes preparation. It admits only as many requests as can be sent within the
// given time, so that none is prepared in vain. Leave must be called once the request was sent or dropped. Kinds: Busy
// at once when there are too many.
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
