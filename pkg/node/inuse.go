package node

import (
	"context"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// CheckUnused refuses while the volume is staged or published on this node, or a call was cut short that may have left
// it so. What the records say is believed once the kernel was asked: one that could not be removed, as on a disk that
// took no writes, is back after a start of the process. It is for a controller in the same process, whose backend may
// not know. The caller holds the volume's lock, so that nothing begins to use the volume before it is deleted.
//
// Kinds: InUse, naming the places.
func (s *Service) CheckUnused(ctx context.Context, volume string) error {
	record := s.ledger.Get(volume)
	if record.Empty() {
		return nil
	}
	record, live := s.livePublications(ctx, record)
	var places []string
	for _, target := range live {
		places = append(places, "published at "+target)
	}
	if record.Staged != nil && s.mayBeStaged(ctx, *record.Staged) {
		places = append(places, "staged at "+record.Staged.Path)
	}
	if len(places) == 0 {
		s.drop(ctx, ledger.Record{Volume: volume})
		return nil
	}
	return failed("delete", volume, backends.Errorf(backends.InUse,
		"it is in use on node %q, %s: unpublish and unstage it first",
		s.nodeID, strings.Join(places, ", ")))
}

// mayBeStaged reports whether anything of a staging is there, or may be.
func (s *Service) mayBeStaged(ctx context.Context, staged ledger.Staging) bool {
	if staged.Pending {
		return true
	}
	mounted, err := mount.Mounted(ctx, placeOf(staged))
	if err != nil || mounted || staged.Source.Kind != ledger.Device {
		return err != nil || mounted
	}
	if !staged.Source.Image {
		return s.checkUnclaimed(staged.Source) != nil
	}
	devices, err := devicesOf(ctx, staged.Source)
	return err != nil || len(devices) > 0
}
