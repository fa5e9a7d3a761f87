package orchestrator

import (
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// under reports whether path is dir or lies below it.
func under(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// mountsOf returns the mounts that have to do with the directories, in the order in which they were made: those below
// them, those that show a part of them elsewhere (bind mounts), and those of the loop devices given.
func mountsOf(dirs []string, loops []loop) ([]*mountinfo.Info, error) {
	all, err := mountinfo.GetMounts(nil)
	if err != nil {
		return nil, err
	}
	var found []*mountinfo.Info
	for _, m := range all {
		if concerns(m, dirs, all) || onLoop(m, loops) {
			found = append(found, m)
		}
	}
	return found, nil
}

func concerns(m *mountinfo.Info, dirs []string, all []*mountinfo.Info) bool {
	for _, dir := range dirs {
		if under(m.Mountpoint, dir) {
			return true
		}
		holder := holderOf(dir, all)
		if holder == nil || holder.Major != m.Major || holder.Minor != m.Minor {
			continue
		}
		if under(m.Root, rootIn(holder, dir)) {
			return true
		}
	}
	return false
}

// holderOf returns the mount that a directory is on: of those that hold it the deepest, of these the last.
func holderOf(dir string, all []*mountinfo.Info) *mountinfo.Info {
	var holder *mountinfo.Info
	for _, m := range all {
		if under(dir, m.Mountpoint) && (holder == nil || len(m.Mountpoint) >= len(holder.Mountpoint)) {
			holder = m
		}
	}
	return holder
}

// rootIn is a directory's path inside the filesystem that is mounted over it.
func rootIn(holder *mountinfo.Info, dir string) string {
	relative := strings.TrimPrefix(dir, strings.TrimSuffix(holder.Mountpoint, "/"))
	return filepath.Join(holder.Root, relative)
}

func onLoop(m *mountinfo.Info, loops []loop) bool {
	for _, l := range loops {
		// A btrfs has a device number of its own; its source tells.
		if m.Major == l.major && m.Minor == l.minor || m.Source == "/dev/"+l.name {
			return true
		}
	}
	return false
}

// MountsAt counts the mounts that are stacked at a path.
func MountsAt(path string) (int, error) {
	found, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return m.Mountpoint != path, false })
	return len(found), err
}
