package ebs

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// forms runs a test for each form of a volume that pods can use: filesystems, and the device.
func forms(t *testing.T, test func(t *testing.T, fsType string)) {
	for _, fsType := range []string{"ext4", "xfs", ""} {
		name := fsType
		if name == "" {
			name = "raw"
		}
		t.Run(name, func(t *testing.T) { test(t, fsType) })
	}
}

// A volume is created, attached, written to, detached, and attached again, when its disk has another name. The data is
// still there.
func TestLife(t *testing.T) { forms(t, life) }

func life(t *testing.T, fsType string) {
	i := newInstance(t, nil)
	v := i.newVolume("one", fsType)
	v.attach()
	before := v.device(v.id)
	v.show()
	written := v.write()
	v.verify(written)
	v.putAway()
	v.detach()

	other := i.newVolume("other", fsType)
	other.attach()
	v.attach()
	if after := v.device(v.id); after == before {
		t.Fatalf("the disk is %s as before: the test is to give it another name", after)
	} else {
		t.Logf("it was %s, and is %s", before, after)
	}
	v.show()
	v.verify(written)
	v.must(v.stage()) // a retry, as by a restarted kubelet
	v.verify(written)
	v.putAway()
	i.blank(other.device(other.id))
	other.show()
	other.verify(other.write())
	other.putAway()
	i.nothing()
}

// EC2 reports a volume as attached before the instance has its disk. Staging succeeds once the disk exists.
func TestDiskIsLate(t *testing.T) {
	i := newInstance(t, func(i *instance) { i.late = 3 * time.Second })
	v := i.newVolume("late", "ext4")
	v.attach()
	began := time.Now()
	err := v.stage()
	v.refused(err, codes.Unavailable, region.Serial(v.id))
	for ; err != nil && time.Since(began) < callLimit; err = v.stage() {
		if status.Code(err) != codes.Unavailable {
			t.Fatalf("while the disk is late: %v, want Unavailable", err)
		}
		<-time.After(200 * time.Millisecond)
	}
	v.must(err)
	t.Logf("staged %v after it was attached", time.Since(began).Round(time.Millisecond))
	v.must(v.publishAt(v.target))
	v.verify(v.write())
}

// A disk is missing because the volume is attached to another instance, or for no apparent reason. Staging fails at
// once, with the disk's serial number in the message.
func TestDiskIsMissing(t *testing.T) {
	i := newInstance(t, func(i *instance) { i.empty = true })
	for name, node := range map[string]string{"elsewhere": region.NodeB, "nowhere": region.NodeA} {
		v := i.newVolume(name, "ext4")
		v.attachTo(node)
		began := time.Now()
		v.refused(v.stage(), codes.Unavailable, region.Serial(v.id))
		took := time.Since(began)
		t.Logf("the answer came after %v", took.Round(time.Millisecond))
		if took > callLimit/2 {
			t.Errorf("the answer came after %v", took)
		}
		i.nothing()
	}
}
