package ebs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// A disk with the serial number that is too small to be the volume is not used.
func TestDiskIsTooSmall(t *testing.T) {
	forms(t, func(t *testing.T, fsType string) {
		i := newInstance(t, func(i *instance) { i.empty = true })
		v := i.newVolume("small", fsType)
		v.attach()
		name, path := i.stray(region.Serial(v.id), gib/2)
		v.refused(v.stage(), codes.Unavailable, path, "536870912", "1073741824")
		i.blank(path)
		i.nothing()
		i.pull(name)
	})
}

// Two disks with the same serial number cannot both be the volume: neither is used.
func TestDiskIsDoubled(t *testing.T) {
	forms(t, func(t *testing.T, fsType string) {
		i := newInstance(t, nil)
		v := i.newVolume("doubled", fsType)
		v.attach()
		one := v.device(v.id)
		name, two := i.stray(region.Serial(v.id), gib)
		v.refused(v.stage(), codes.Unavailable, region.Serial(v.id), one, two)
		i.blank(one)
		i.blank(two)
		i.nothing()
		i.pull(name)
		v.show() // now there is one
		v.verify(v.write())
		v.putAway()
	})
}

// A udev link that refers to another volume's disk has no effect, because the driver does not follow it.
func TestLinkIsStale(t *testing.T) {
	i := newInstance(t, nil)
	v, other := i.newVolume("linked", "ext4"), i.newVolume("other", "ext4")
	other.attach()
	link := "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_" + region.Serial(v.id)
	v.must(os.MkdirAll(filepath.Dir(link), 0o755))
	v.must(os.Symlink(other.device(other.id), link))
	t.Cleanup(func() { v.check(os.Remove(link)) })
	v.attach()
	v.show()
	v.verify(v.write())
	v.putAway()
	i.blank(other.device(other.id))
	v.detach()
	v.refused(v.stage(), codes.Unavailable, region.Serial(v.id))
	i.blank(other.device(other.id))
	i.nothing()
}

// number returns the number of a device.
func (i *instance) number(path string) uint64 {
	i.Helper()
	var stat unix.Stat_t
	i.must(unix.Stat(path, &stat))
	return stat.Rdev
}

// The disk of a staged volume is pulled, and another volume's disk gets its name and number. No pod gets the other
// disk.
func TestDiskIsSwapped(t *testing.T) {
	forms(t, func(t *testing.T, fsType string) {
		i := newInstance(t, nil)
		v, other := i.newVolume("swapped", fsType), i.newVolume("other", fsType)
		v.attach()
		was := v.device(v.id)
		v.must(v.stage())
		if fsType != "" { // It would keep the name in use.
			v.putAway()
		}
		i.pull(v.id)
		other.attach()
		if is := other.device(other.id); is != was {
			t.Fatalf("the other disk is %s, want %s: the test is to give it that name", is, was)
		}
		if v.raw() {
			if node := filepath.Join(v.staging, "device"); i.number(node) != i.number(was) {
				t.Fatalf("%s has another number than %s: the test is to give it to the other disk", node, was)
			}
			v.refused(v.publishAt(v.target), codes.FailedPrecondition, "NodeStageVolume")
			_, err := v.node.NodeExpandVolume(v.ctx(), &csi.NodeExpandVolumeRequest{VolumeId: v.id, VolumePath: v.staging,
				StagingTargetPath: v.staging, VolumeCapability: v.capability})
			if err == nil {
				t.Error("NodeExpandVolume succeeds with another disk")
			}
			t.Logf("NodeExpandVolume: %v", err)
		}
		v.refused(v.stage(), codes.Unavailable, region.Serial(v.id))
		i.blank(was)
		v.putAway()
		i.blank(was)
		i.nothing()
		other.show()
		written := other.write()

		v.detach() // the API had it attached all the time
		v.attach()
		v.show()
		v.verify(v.write())
		other.verify(written)
		v.putAway()
		other.putAway()
		i.nothing()
	})
}
