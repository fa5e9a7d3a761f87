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
// Kinds: InUse, naming the places; Busy when work on the volume has not ended by the end of the context; Unavailable
// while its record cannot be read.
func (s *Service) CheckUnused(ctx context.Context, volume string) error {
	if err := s.known(ctx, volume); err != nil {
		return failed("delete", volume, err)
	}
	record := s.ledger.Get(volume)
	if record.Empty() {
		return nil
	}
	places := s.placesOf(ctx, record)
	if len(places) == 0 {
		// A later volume with this handle must not get the outcome of work on this one.
		if err := s.works.Stop(ctx, volume); err != nil {
			return failed("delete", volume, err)
		}
		s.drop(ctx, ledger.Record{Volume: volume})
		return nil
	}
	return failed("delete", volume, backends.Errorf(backends.InUse,
		"it is in use on node %q, %s: unpublish and unstage it first",
		s.nodeID, strings.Join(places, ", ")))
}

// InUse returns where the volume is staged or published on this node, or may be after an interrupted call; "" if it is
// not in use. A use that begins during the call may be missing. The backend, which must be a Releaser, is asked, too:
// its note of the use stays if this node's records are lost. InUse changes nothing, and needs no lock.
func (s *Service) InUse(ctx context.Context, volume string) string {
	if err := s.known(ctx, volume); err != nil {
		return "this cannot be told: " + err.Error()
	}
	places := s.placesOf(ctx, s.ledger.Get(volume))
	if len(places) == 0 && s.features.Release.Used(ctx, volume) {
		return "the storage notes it as in use, or cannot tell now; there is no record of where: if nothing on the " +
			"node has it mounted, restart the machine"
	}
	return strings.Join(places, ", ")
}

// placesOf returns where a volume with the record is staged or published, or may be.
func (s *Service) placesOf(ctx context.Context, record ledger.Record) (places []string) {
	record, live := s.livePublications(ctx, record)
	for _, target := range live {
		places = append(places, "published at "+target)
	}
	if record.Staged != nil && s.mayBeStaged(ctx, record.Volume, *record.Staged) {
		places = append(places, "staged at "+record.Staged.Path)
	}
	return places
}

// mayBeStaged reports whether anything of a staging exists, or may exist. Of a staging that was begun and not finished,
// more may exist a moment later while anything still works on the volume. Otherwise the kernel knows what is left.
func (s *Service) mayBeStaged(ctx context.Context, volume string, staged ledger.Staging) bool {
	if staged.Pending && s.changing(volume) {
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
