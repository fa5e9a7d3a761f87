package ebs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A volume grows while a pod uses it: the kernel notices that the disk has grown, and the filesystem follows.
func TestGrowsInUse(t *testing.T) {
	forms(t, func(t *testing.T, fsType string) {
		v := newInstance(t, func(i *instance) { i.served = true }).newVolume("grown", fsType)
		v.attach()
		v.show()
		written := v.write()
		v.grow()
		began := time.Now()
		err := v.expand()
		for ; status.Code(err) == codes.Unavailable && time.Since(began) < callLimit; err = v.expand() {
			<-time.After(100 * time.Millisecond)
		}
		v.must(err)
		v.Logf("grown after %v", time.Since(began).Round(time.Millisecond))
		v.must(v.expand()) // a retry, as after a lost answer
		v.large()
		v.verify(written)
		v.putAway()
		v.must(v.stage())
		v.must(v.publishAt(v.target))
		v.large()
		v.verify(written)
		v.putAway()
		v.nothing()
	})
}

// While the disk does not show the volume's new size, the expansion is not reported as done. Once it does, the
// filesystem follows, although the volume was smaller when it was attached.
func TestGrowsLater(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs"} {
		t.Run(fsType, func(t *testing.T) {
			v := newInstance(t, nil).newVolume("grown", fsType)
			v.attach()
			v.show()
			written, small := v.write(), v.publish
			v.grow()
			v.refused(v.expand(), codes.Unavailable, v.device(v.id), "1073741824", "2147483648")
			v.putAway()
			v.detach()
			v.attach()
			v.publish = small
			v.show()
			v.large()
			v.verify(written)
			v.putAway()
			v.nothing()
		})
	}
}

// grow grows the volume from 1 GiB to 2 GiB.
func (v *volume) grow() {
	v.Helper()
	grown, err := v.controller.ControllerExpandVolume(v.ctx(), &csi.ControllerExpandVolumeRequest{
		VolumeId: v.id, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}, VolumeCapability: v.capability,
	})
	v.must(err)
	if grown.GetCapacityBytes() != 2*gib || !grown.GetNodeExpansionRequired() {
		v.Fatalf("ControllerExpandVolume answers %v", grown)
	}
}

func (v *volume) expand() error {
	done, err := v.node.NodeExpandVolume(v.ctx(), &csi.NodeExpandVolumeRequest{
		VolumeId: v.id, VolumePath: v.target, StagingTargetPath: v.staging,
		CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}, VolumeCapability: v.capability,
	})
	if err == nil && done.GetCapacityBytes() != 2*gib {
		v.Errorf("NodeExpandVolume answers %d bytes", done.GetCapacityBytes())
	}
	return err
}

// large fails the test unless the pod can use the additional space.
func (v *volume) large() {
	v.Helper()
	path := v.target
	if v.raw() {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		v.must(err)
		defer file.Close()
		_, err = file.WriteAt(make([]byte, mib), 2*gib-mib)
		v.must(err)
		v.must(file.Sync())
		return
	}
	var stat unix.Statfs_t
	v.must(unix.Statfs(path, &stat))
	if size := int64(stat.Blocks) * stat.Bsize; size < 2*gib*85/100 || size > 2*gib {
		v.Errorf("the pod sees %d bytes, want nearly 2 GiB", size)
	}
	file, err := os.Create(filepath.Join(path, "large"))
	v.must(err)
	defer file.Close()
	v.must(unix.Fallocate(int(file.Fd()), 0, 0, gib+gib/4))
	v.must(os.Remove(file.Name()))
}
