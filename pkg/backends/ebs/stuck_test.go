package ebs_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestNoRoomIsTold makes EC2 accept a volume for which the instance has no room.
func TestNoRoomIsTold(t *testing.T) { synctest.Test(t, noRoomIsTold) }

func noRoomIsTold(t *testing.T) {
	config := region.Quick()
	config.Types["m5.tiny"] = fake.InstanceType{MaxAttachments: 2, Shared: true, Lenient: true}
	w := region.New(t, config, 0)
	d := open(t, w, nil)
	v := d.make("one").Handle
	for name, d := range map[string]driver{"the process": d, "the next process": open(t, w, nil)} {
		_, err := d.f.Attach.Attach(within(t, 15*time.Second), region.Request(v, region.NodeA))
		if !backends.Is(err, backends.Busy) || !strings.Contains(err.Error(), "has 2 disks with it") {
			t.Errorf("%s: %v, want Busy and the disks of the instance", name, err)
		}
	}
	if calls := w.Server.Calls(); calls["AttachVolume"] != 1 || calls["DetachVolume"] != 0 {
		t.Errorf("the requests are %v, want one attachment and no detachment", calls)
	}
	if err := d.f.Attach.Detach(t.Context(), v, region.NodeA); err != nil || len(w.Server.Volumes()[0].Instances) != 0 {
		t.Errorf("detached with %v; there is %+v", err, w.Server.Volumes())
	}
}
