package node

import (
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// CheckUnused refuses while the records say that the volume is staged or published on this node, or that a call
// was cut short that may have left it so. It is for a controller in the same process, whose backend may not know. The
// caller holds the volume's lock, so that nothing begins to use the volume before it is deleted.
//
// Kinds: InUse, naming the places.
func (s *Service) CheckUnused(volume string) error {
	record := s.ledger.Get(volume)
	if record.Empty() {
		return nil
	}
	var places []string
	for _, p := range record.Published {
		places = append(places, "published at "+p.Target)
	}
	if record.Staged != nil {
		places = append(places, "staged at "+record.Staged.Path)
	}
	return failed("delete", volume, backends.Errorf(backends.InUse,
		"it is in use on node %q, %s: unpublish and unstage it first",
		s.nodeID, strings.Join(places, ", ")))
}
