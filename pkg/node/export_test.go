package node

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/node/ledger"
)

// BePatient sets how long after the end of its context an operation may take to report its outcome.
func (s *Service) BePatient(d time.Duration) { s.limits.grace, s.limits.answerTime = d, d }

// SearchFor sets the time for finding the users of a volume.
func (s *Service) SearchFor(d time.Duration) { s.limits.searchTime = d }

// Progress says what works on a device.
func (s *Service) Progress(path string) string { return s.tools.Progress(path) }

// TrimDue trims the volumes that are due at a time.
func (s *Service) TrimDue(ctx context.Context, now time.Time) { s.trims.Due(ctx, now) }

// RunTrims is the part of Run that trims, with ticks from a test.
func (s *Service) RunTrims(ctx context.Context, ticks <-chan time.Time) { s.trims.Run(ctx, ticks) }

// DetachWithin sets the minimum time that a device to be freed may stay open elsewhere.
func (s *Service) DetachWithin(d time.Duration) { s.limits.detachTime = d }

// DetachTime returns how long a request may wait for other processes to close a device.
func (s *Service) DetachTime(ctx context.Context) time.Duration { return s.detachTime(ctx) }

// CheckUnclaimed says why a device may still be mounted.
func (s *Service) CheckUnclaimed(source ledger.Source) error { return s.checkUnclaimed(source) }
