package node

import (
	"context"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/trim"
)

// pauseTrim keeps a volume from being trimmed while it is staged or unstaged. resume puts the volume on the schedule or
// takes it off, according to its record by then. Kinds: Unavailable when the context ended before a trim did.
func (s *Service) pauseTrim(ctx context.Context, volume string) (resume func(), err error) {
	goOn, err := s.trims.Pause(ctx, volume)
	if err != nil {
		return nil, err
	}
	return func() {
		s.scheduleTrim(s.ledger.Get(volume))
		goOn()
	}, nil
}

// scheduleTrim puts a volume on the schedule if it is staged and is to be trimmed, and else takes it off.
func (s *Service) scheduleTrim(record ledger.Record) {
	staged := record.Staged
	if staged == nil || staged.Pending || staged.TrimInterval == 0 || staged.ReadOnly || staged.Type != backends.Mount ||
		staged.Source.Kind != ledger.Device {
		s.trims.Drop(record.Volume)
		return
	}
	s.trims.Set(trim.Volume{Name: record.Volume, Interval: staged.TrimInterval, Filesystem: trim.Filesystem{
		Path: staged.Path, Type: staged.Source.FSType, Dev: staged.Root.Dev, Ino: staged.Root.Ino,
		Major: staged.Source.Major, Minor: staged.Source.Minor,
	}}, s.now())
}

// resumeTrims schedules the volumes that were staged before this process started.
func (s *Service) resumeTrims() {
	if s.now == nil {
		s.now = time.Now
	}
	s.trims.Prune(s.now())
	s.scheduleTrims()
}

// scheduleTrims schedules the volumes whose records were read just now, and changes nothing for others.
func (s *Service) scheduleTrims() {
	for _, record := range s.ledger.Records() {
		s.scheduleTrim(s.ledger.Get(record.Volume)) // It may have been unstaged meanwhile.
	}
}

// trimCheck is how often to check for volumes that are due.
const trimCheck = time.Minute

// Run does the node's work between requests until the context ends: it trims the volumes whose class asks for it.
func (s *Service) Run(ctx context.Context) {
	ticker := time.NewTicker(trimCheck)
	defer ticker.Stop()
	s.trims.Run(ctx, ticker.C)
}
