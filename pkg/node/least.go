package node

import (
	"cmp"

	"github.com/stowage-csi/stowage/pkg/node/filesystem"
)

// LeastDevice is the size in bytes of the smallest device that can be staged as a filesystem of the type which the volume
// capability names, or where it names none, of the settings' type or the default. It is 0 for a type that is never made here.
func (s Settings) LeastDevice(named string) int64 { return filesystem.Least(s.fsType(named)) }

// CheckGeometry tells whether a filesystem of that type can be laid out as the settings ask for. Kinds: Invalid.
func (s Settings) CheckGeometry(named string) error { return s.Check(s.fsType(named)) }

func (s Settings) fsType(named string) string { return cmp.Or(named, s.FSType, filesystem.Types()[0]) }
