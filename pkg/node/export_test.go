package node

import (
	"context"
	"time"
)

// TrimDue trims what is due at a time.
func (s *Service) TrimDue(ctx context.Context, now time.Time) { s.trims.Due(ctx, now) }

// RunTrims is the part of Run that trims, at the ticks of a test.
func (s *Service) RunTrims(ctx context.Context, ticks <-chan time.Time) { s.trims.Run(ctx, ticks) }
