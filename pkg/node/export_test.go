package node

import (
	"context"
	"time"
)

// BePatient is how long an operation may take, from the end of its context on, to say what became of it.
func (s *Service) BePatient(d time.Duration) { s.limits.grace = d }

// SearchFor is for how long those are looked for who use a volume.
func (s *Service) SearchFor(d time.Duration) { s.limits.searchTime = d }

// Progress says what works on a device.
func (s *Service) Progress(path string) string { return s.tools.Progress(path) }

// TrimDue trims what is due at a time.
func (s *Service) TrimDue(ctx context.Context, now time.Time) { s.trims.Due(ctx, now) }

// RunTrims is the part of Run that trims, at the ticks of a test.
func (s *Service) RunTrims(ctx context.Context, ticks <-chan time.Time) { s.trims.Run(ctx, ticks) }
