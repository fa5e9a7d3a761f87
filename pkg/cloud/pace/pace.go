package pace

import (
	"context"
	"sync"

	"golang.org/x/time/rate"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// Limit is the rate limit of an action.
type Limit struct {
	Burst     int     `json:"burst"`     // at once, after a pause
	PerSecond float64 `json:"perSecond"` // sustained
}

// Pacer makes requests wait for their turn, separately for each action.
type Pacer struct {
	of func(action string) Limit

	mu        sync.Mutex
	actions   map[string]*rate.Limiter
	preparing map[string]int // see Enter
}

// New returns a Pacer. The function returns the limit of an action.
func New(of func(action string) Limit) *Pacer {
	return &Pacer{of: of, actions: map[string]*rate.Limiter{}, preparing: map[string]int{}}
}

func (p *Pacer) action(name string) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.actions[name]
	if !ok {
		limit := p.of(name)
		l = rate.NewLimiter(rate.Limit(limit.PerSecond), limit.Burst)
		p.actions[name] = l
	}
	return l
}

// Wait returns when a request may be sent. Kinds: Busy at once when its turn would come after the context's end.
func (p *Pacer) Wait(ctx context.Context, action string) error {
	l := p.action(action)
	if err := l.Wait(ctx); err != nil {
		return late(action, float64(l.Limit()))
	}
	return nil
}

// Used returns the used part of an action's burst, for the action that has used most of it: 0 for none, 1 for all of
// it, and more when requests are waiting for their turn.
func (p *Pacer) Used() (most float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.actions {
		most = max(most, 1-l.Tokens()/float64(l.Burst()))
	}
	return most
}

func late(action string, perSecond float64) error {
	return failure.Errorf(failure.Busy,
		"%s is asked for as often as the cloud allows, %.3g times a second, and others are before: ask again", action,
		perSecond)
}

// slowest is the smallest fraction of its limit to which an action is slowed down. recovery is the factor by which each
// accepted request speeds it up again.
const (
	slowest  = 1.0 / 8
	recovery = 1.05
)

// Refused records that the cloud refused a request for its rate all the same: others use the account, too.
func (p *Pacer) Refused(action string) {
	l, limit := p.action(action), rate.Limit(p.of(action).PerSecond)
	l.SetBurst(1)
	l.SetLimit(max(l.Limit()/2, limit*slowest))
}

// Accepted records that the cloud did not refuse a request.
func (p *Pacer) Accepted(action string) {
	l, limit := p.action(action), p.of(action)
	if l.Limit() >= rate.Limit(limit.PerSecond) {
		l.SetBurst(limit.Burst)
		return
	}
	l.SetLimit(min(l.Limit()*recovery, rate.Limit(limit.PerSecond)))
}
