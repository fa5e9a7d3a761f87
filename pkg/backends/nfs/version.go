package nfs

import (
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// anyFour is the version that means any 4.x.
const anyFour = "4"

// The places of a version besides the mount options, as their users know them.
const (
	inClass      = "the class parameter nfsvers"
	inAttributes = "the attribute nfsvers"
)

// nfsVersion is the version of NFS that is named for a volume besides its mount options.
type nfsVersion struct {
	place string // inClass or inAttributes
	named string // empty for none
}

// agree refuses mount options that ask for another version. Any 4.x agrees with each 4.x. Kinds: Invalid.
func (v nfsVersion) agree(asked string) error {
	if v.named == "" || asked == "" || v.named == asked || includes(v.named, asked) || includes(asked, v.named) {
		return nil
	}
	return backends.Errorf(backends.Invalid,
		"the mount options ask for NFS %s and %s for %s: name one, or the same twice", asked, v.place, v.named)
}

// includes reports whether a version is one of those that the first means.
func includes(wide, version string) bool {
	return wide == anyFour && strings.HasPrefix(version, anyFour)
}

// choose returns the address with the version to use: that of the mount options, else the named one, else the one with
// which the share is mounted. Kinds: Invalid when the first two differ; Unavailable when any 4.x is requested and the
// share is mounted with version 3.
func (v nfsVersion) choose(s *share.Share, asked string) (export.Address, error) {
	if err := v.agree(asked); err != nil {
		return export.Address{}, err
	}
	address := s.Address
	address.Version = s.Version
	for _, exact := range []string{v.named, asked} {
		if exact != "" && exact != anyFour {
			address.Version = exact
		}
	}
	// A share is mounted once, for all its volumes: another class, the configuration or the server may say 3.
	if (v.named == anyFour || asked == anyFour) && !includes(anyFour, address.Version) {
		return export.Address{}, backends.Errorf(backends.Unavailable,
			"any NFS 4 is asked for, and %s is mounted with NFS %s here: name 4.0, 4.1 or 4.2, if the server has it",
			s.Address, s.Version)
	}
	return address, nil
}
