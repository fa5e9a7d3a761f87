package node

import (
	"context"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// CheckUnused refuses while the volume is staged or published on this node, or may be after an interrupted call. It
// asks the kernel before it believes a record: a record that could not be removed, as on a disk that takes no writes,
// comes back when the process restarts. CheckUnused is for a controller in the same process, whose backend may not know
// of the use. The caller holds the volume's lock, so that no use begins before the volume is deleted.
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

// mayBeStaged reports whether anything of a staging exists, or may exist.
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
