package filesystem

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/classes"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// An ext4 with clusters fills its device when it is created and after it was grown, whatever the sizes. Otherwise each
// stage would check and grow it in vain.
func TestClustersNeedNoGrow(t *testing.T) {
	needTools(t, "ext4")
	for name, g := range map[string]classes.Geometry{
		"default clusters": {BigAlloc: true},
		"64 KiB clusters":  {BlockSize: 4096, BigAlloc: true, ClusterSize: 64 << 10},
		"1 MiB clusters":   {BlockSize: 4096, BigAlloc: true, ClusterSize: 1 << 20},
		"1 KiB blocks":     {BlockSize: 1024, BigAlloc: true, ClusterSize: 32 << 10, BytesPerInode: 64 << 10},
		"2 KiB blocks":     {BlockSize: 2048, BigAlloc: true, ClusterSize: 8 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int64{64*mib + 12288, 300*mib + 20480, 1<<30 + 4096, 2<<30 + 300*mib, 5<<30 + 512,
				33<<30 + 40*4096} {
				f := image(t, size)
				d := attach(t, f)
				if _, err := NewTools(1).Format(t.Context(), laidOut(d, "ext4", g)); err != nil {
					t.Fatal(err)
				}
				if found := probe(t, d.File); NeedsGrow(found, size) {
					t.Errorf("new on %d bytes it has %d and is to grow", size, found.SizeBytes)
				}
				for _, more := range []int64{4096, 61440, mib + 4096, 17*mib + 512, 130 * mib} {
					enlarge(t, f, d, size+more)
					wantGrown(t, d, size+more)
				}
				_ = d.Close() // the device frees itself
			}
		})
	}
}

// wantGrown grows a filesystem that needs to grow, and checks that it then no longer needs to.
func wantGrown(t *testing.T, d *device.Device, size int64) {
	t.Helper()
	before := probe(t, d.File)
	if !NeedsGrow(before, size) {
		return
	}
	// GrowOffline does not do this: resize2fs asks to be forced.
	tool(t, "sh", "-ec", "e2fsck -f -p $0 || test $? = 1; resize2fs -f $0", d.Path)
	after := probe(t, d.File)
	if NeedsGrow(after, size) {
		t.Errorf("grown to %d bytes from %d it has %d and is to grow still", size, before.SizeBytes, after.SizeBytes)
	}
	if after.SizeBytes <= before.SizeBytes {
		t.Errorf("growing to %d bytes it stayed at %d", size, before.SizeBytes)
	}
}
