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

// mountsOf returns the mounts related to the directories, in the order of their creation: those below them, those that
// show a part of them elsewhere (bind mounts), and those of the given loop devices.
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

// holderOf returns the mount that contains a directory: the deepest one, and the last of several.
func holderOf(dir string, all []*mountinfo.Info) *mountinfo.Info {
	var holder *mountinfo.Info
	for _, m := range all {
		if under(dir, m.Mountpoint) && (holder == nil || len(m.Mountpoint) >= len(holder.Mountpoint)) {
			holder = m
		}
	}
	return holder
}

// rootIn returns a directory's path inside the mounted filesystem.
func rootIn(holder *mountinfo.Info, dir string) string {
	relative := strings.TrimPrefix(dir, strings.TrimSuffix(holder.Mountpoint, "/"))
	return filepath.Join(holder.Root, relative)
}

func onLoop(m *mountinfo.Info, loops []loop) bool {
	for _, l := range loops {
		// A btrfs has its own device number, but its source identifies it.
		if m.Major == l.major && m.Minor == l.minor || m.Source == "/dev/"+l.name {
			return true
		}
	}
	return false
}

// MountsAt returns the number of mounts stacked at a path.
func MountsAt(path string) (int, error) {
	found, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return m.Mountpoint != path, false })
	return len(found), err
}
