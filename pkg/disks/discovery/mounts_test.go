package discovery

import (
	"testing"

	"github.com/moby/sys/mountinfo"
)

// TestList checks where a filesystem shows besides: here, and elsewhere on the node.
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
