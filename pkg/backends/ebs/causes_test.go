package ebs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// interrupted is a call whose time ends.
type interrupted struct {
	action string // EC2 refuses it for its rate, and then does not answer
	call   func(ctx context.Context, d driver, volume string) error
	again  bool // whether the call itself makes another request after one without an answer
}

func interruptedCalls() map[string]interrupted {
	create := func(ctx context.Context, d driver, _ string) error {
		_, err := d.Create(ctx, region.Spec("new"))
		return err
	}
	attach := func(ctx context.Context, d driver, volume string) error {
		_, err := d.f.Attach.Attach(ctx, region.Request(volume, region.NodeA))
		return err
	}
	snapshot := func(ctx context.Context, d driver, volume string) error {
		_, err := d.f.Snapshot.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: volume})
		return err
	}
	return map[string]interrupted{
		"Create, for the name":         {action: "DescribeVolumes", call: create},
		"Create":                       {action: "CreateVolume", call: create, again: true},
		"Attach, for the device names": {action: "DescribeInstances", call: attach},
		"Attach":                       {action: "AttachVolume", call: attach},
		"CreateSnapshot, for the name": {action: "DescribeSnapshots", call: snapshot},
		"CreateSnapshot":               {action: "CreateSnapshot", call: snapshot},
		"Clone": {action: "CopyVolumes", again: true, call: func(ctx context.Context, d driver, volume string) error {
			_, err := d.f.Clone.Clone(ctx, region.Spec("new"), volume)
			return err
		}},
		"Find": {action: "DescribeVolumes", call: func(ctx context.Context, d driver, _ string) error {
			_, err := d.Find(ctx, region.Spec("one"))
			return err
		}},
		"Get": {action: "DescribeVolumes", call: func(ctx context.Context, d driver, volume string) error {
			_, err := d.Get(ctx, volume)
			return err
		}},
		"Delete": {action: "DeleteVolume", again: true, call: func(ctx context.Context, d driver, volume string) error {
			return d.Delete(ctx, volume)
		}},
		"Expand": {action: "ModifyVolume", call: func(ctx context.Context, d driver, volume string) error {
			_, err := d.f.Expand.Expand(ctx, volume, backends.CapacityRange{RequiredBytes: 8 << 30})
			return err
		}},
		"Modify": {action: "ModifyVolume", call: func(ctx context.Context, d driver, volume string) error {
			kind, iops := "io2", int64(3500)
			return d.f.Modify.Modify(ctx, volume, &ebs.Mutable{Type: &kind, IOPS: &iops})
		}},
		"Detach": {action: "DetachVolume", call: func(ctx context.Context, d driver, volume string) error {
			if err := attach(ctx, d, volume); err != nil {
				return err
			}
			return d.f.Attach.Detach(ctx, volume, region.NodeA)
		}},
	}
}

// TestCauseStandsAtTheDeadline makes a caller's time end while a request is under way that EC2 has refused for its rate
// before. The caller hears of the refusal, whether it or the request is out of time first.
func TestCauseStandsAtTheDeadline(t *testing.T) {
	for name, row := range interruptedCalls() {
		for _, patience := range []time.Duration{time.Second / 2, time.Minute} {
			if row.again && patience == time.Minute {
				continue // The caller hears of the last request.
			}
			t.Run(fmt.Sprintf("%s within %v", name, patience), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := region.New(t, region.Quick(), 0)
					d := open(t, w, nil)
					volume := d.make("one").Handle
					w.Proxy.Script(faults.Rule{Action: row.action, Times: 1, Kind: faults.Throttle},
						faults.Rule{Action: row.action, Kind: faults.Hang})
					err := row.call(within(t, patience), d, volume)
					if !undecided(err) || !strings.Contains(err.Error(), "RequestLimitExceeded") {
						t.Errorf("got %v, want Busy or Unavailable with the refusal", err)
					}
					<-time.After(time.Hour) // The operation has ended.
				})
			})
		}
	}
}
