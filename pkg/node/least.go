package node

import "github.com/stowage-csi/stowage/pkg/node/filesystem"

// LeastDevice is the size in bytes of the smallest device that can be staged as a filesystem of the type which the volume
// capability names, or where it names none, of the settings' type or the default. It is 0 for a type that is never made here.
func (s Settings) LeastDevice(named string) int64 {
	for _, fsType := range []string{named, s.FSType} {
		if fsType != "" {
			return filesystem.Least(fsType)
		}
	}
	return filesystem.Least(filesystem.Types()[0])
}
