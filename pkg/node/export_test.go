package node

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/node/ledger"
)

// BePatient is how long an operation may take, from the end of its context on, to say what became of it.
func (s *Service) BePatient(d time.Duration) { s.limits.grace, s.limits.answerTime = d, d }

// SearchFor is for how long those are looked for who use a volume.
func (s *Service) SearchFor(d time.Duration) { s.limits.searchTime = d }

// Progress says what works on a device.
func (s *Service) Progress(path string) string { return s.tools.Progress(path) }

// TrimDue trims what is due at a time.
func (s *Service) TrimDue(ctx context.Context, now time.Time) { s.trims.Due(ctx, now) }

// RunTrims is the part of Run that trims, at the ticks of a test.
func (s *Service) RunTrims(ctx context.Context, ticks <-chan time.Time) { s.trims.Run(ctx, ticks) }

// DetachWithin is how long at least a device that is to be freed may be open to others.
func (s *Service) DetachWithin(d time.Duration) { s.limits.detachTime = d }

// DetachTime is what a request may wait for those who have a device open.
func (s *Service) DetachTime(ctx context.Context) time.Duration { return s.detachTime(ctx) }

// CheckUnclaimed says why a device may be mounted still.
func (s *Service) CheckUnclaimed(source ledger.Source) error { return s.checkUnclaimed(source) }
