package nfs

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/stowage-csi/stowage/pkg/failure"
)

const (
	// unprovenBurst is how many failed proofs on a share are logged at once; further ones are logged once a second.
	unprovenBurst = 100
	// unprovenShares is the number of shares with a limit.
	unprovenShares = 1000
)

// unproven logs why nothing is proven. The refusal does not say it, but an operator may have to act.
type unproven struct {
	log *slog.Logger

	mu     sync.Mutex
	limits map[string]*rate.Limiter // by share: a flood on one hides nothing about another
}

// told reports whether a look has succeeded, and otherwise logs its failure. A look that was skipped because of another
// one is not logged.
func (u *unproven) told(ctx context.Context, p place, k kind, name string, err error) bool {
	if err != nil && !errors.Is(err, errLooking) && u.limit(p.key()).Allow() {
		u.log.InfoContext(ctx, "after a refusal it is not proven that there is nothing of the name", "kind", string(k),
			"name", name, "share", p.key(), "error", failure.OneLine(err))
	}
	return err == nil
}

func (u *unproven) limit(share string) *rate.Limiter {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.limits == nil || len(u.limits) >= unprovenShares {
		u.limits = map[string]*rate.Limiter{}
	}
	if u.limits[share] == nil {
		u.limits[share] = rate.NewLimiter(rate.Every(time.Second), unprovenBurst)
	}
	return u.limits[share]
}
