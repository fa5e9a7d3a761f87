package discovery

import (
	"path"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// place is the directory that a filesystem is mounted on, identified by the filesystem that contains the directory.
// Whatever paths lead there, over links, bind mounts, or the mount namespace of a container, it is one place.
type place struct{ filesystem, directory string }

// placesOf returns the place of each mount of one table. The root of a namespace has none.
func placesOf(table []*mountinfo.Info) map[*mountinfo.Info]place {
	byID := map[int]*mountinfo.Info{}
	for _, info := range table {
		byID[info.ID] = info
	}
	places := map[*mountinfo.Info]place{}
	for _, info := range table {
		parent := byID[info.Parent]
		if parent == nil || parent == info {
			continue
		}
		below, isBelow := strings.CutPrefix(info.Mountpoint, parent.Mountpoint)
		if isBelow {
			places[info] = place{filesystemOf(parent), path.Join(parent.Root, below)}
		}
	}
	return places
}
