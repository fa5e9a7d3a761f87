package discovery

import (
	"testing"

	"github.com/moby/sys/mountinfo"
)

// TestList checks where else a filesystem is mounted: here, and elsewhere on the node.
func TestList(t *testing.T) {
	info := func(minor int, source, at string) *mountinfo.Info {
		return &mountinfo.Info{Major: 8, Minor: minor, Source: source, Mountpoint: at, Root: "/", FSType: "ext4"}
	}
	here := []*mountinfo.Info{
		info(1, "/dev/sda1", "/mnt/disks/a"), info(2, "/dev/sdb1", "/mnt/disks/b"), info(3, "/dev/sdc1", "/mnt/disks/c"),
		info(3, "/dev/sdc1", "/var/lib/kubelet/pods/c"), info(4, "tmpfs", "/mnt/disks/d"),
	}
	node := []*mountinfo.Info{
		info(1, "/dev/sda1", "/mnt/disks/a"), info(2, "/dev/disk/by-id/b", "/mnt/disks/b"),
		info(2, "/dev/disk/by-id/b", "/srv/db"), info(3, "/dev/sdc1", "/mnt/disks/c"), info(5, "/dev/sdd1", "/mnt/disks/e"),
	}
	want := map[string]string{
		"/mnt/disks/a": "", "/mnt/disks/b": "/srv/db", "/mnt/disks/c": "/var/lib/kubelet/pods/c",
		"/var/lib/kubelet/pods/c": "/mnt/disks/c",
	}
	got := list(here, node)
	for _, m := range got {
		if elsewhere, is := want[m.Mountpoint]; !is || m.elsewhere != elsewhere {
			t.Errorf("%s shows at %q too, want %q", m.Mountpoint, m.elsewhere, elsewhere)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d filesystems are listed, want %d", len(got), len(want))
	}
}

// TestOnePlace checks that a mount point with two paths is one place: on a node whose /mnt is a link to /var/mnt, in a
// container that has it under the name of the link, and if the directory is bind-mounted.
func TestOnePlace(t *testing.T) {
	mount := func(id, parent, minor int, root, at string) *mountinfo.Info {
		return &mountinfo.Info{ID: id, Parent: parent, Major: 8, Minor: minor, Source: "/dev/sd", Root: root,
			Mountpoint: at, FSType: "xfs"}
	}
	const varDir = "/ostree/deploy/var"
	node := []*mountinfo.Info{
		mount(1, 0, 1, "/ostree/deploy/5", "/"), mount(2, 1, 1, varDir, "/var"), mount(3, 2, 2, "/", "/var/mnt/disks/a"),
		mount(4, 2, 3, "/", "/var/mnt/disks/b"), mount(5, 2, 3, "/", "/var/srv/b"), mount(6, 2, 4, "/", "/var/mnt/disks/c"),
		mount(7, 1, 1, varDir+"/mnt/disks", "/data"), mount(8, 7, 4, "/", "/data/c"),
		mount(9, 2, 5, "/", "/var/srv/mnt/disks/d"),
	}
	container := []*mountinfo.Info{
		mount(21, 20, 9, "/", "/"), mount(22, 21, 1, varDir+"/mnt/disks", "/mnt/disks"),
		mount(23, 22, 2, "/", "/mnt/disks/a"), mount(24, 22, 3, "/", "/mnt/disks/b"), mount(25, 22, 4, "/", "/mnt/disks/c"),
		mount(26, 22, 5, "/", "/mnt/disks/d"),
	}
	want := map[string]string{"/mnt/disks/a": "", "/mnt/disks/b": "/var/srv/b", "/mnt/disks/c": "",
		"/mnt/disks/d": "/var/srv/mnt/disks/d"}
	found := list(container, node)
	for _, m := range found {
		if elsewhere, is := want[m.Mountpoint]; is && m.elsewhere != elsewhere {
			t.Errorf("%s shows at %q too, want %q", m.Mountpoint, m.elsewhere, elsewhere)
		}
	}
	if len(found) != len(container) {
		t.Errorf("%d filesystems are listed, want %d", len(found), len(container))
	}
}
