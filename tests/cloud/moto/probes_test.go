package moto

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// api is an EC2 with two instances in one zone.
type api struct {
	*testing.T
	*ec2.Client
	zone  string
	nodes []string
}

// TestSameAnswers makes the same requests to moto and to the project's own strict API, and compares the answers. Where
// they differ, one of them is wrong.
func TestSameAnswers(t *testing.T) {
	url := server(t).URL
	nodes, err := Instances(t.Context(), url, 2)
	if err != nil {
		t.Fatal(err)
	}
	strict := region.New(t, region.Quick(), 0)
	var o backends.Options
	o.Config = &ebs.Config{}
	strict.Configure(&o)
	theirs := api{t, clientOf(Config(url)), Zone, nodes}
	ours := api{t, clientOf(o.Config.(*ebs.Config).AWS), "region-1a", []string{region.NodeA, region.NodeB}}
	failed, passed := map[string]string{}, []string{}
	all := questions()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		moto, strict := all[name](theirs), all[name](ours)
		if moto == strict {
			passed = append(passed, name)
			t.Logf("%s: both say %q", name, strict)
			continue
		}
		failed[name] = fmt.Sprintf("moto says %q, the strict API %q", moto, strict)
	}
	judge(t, failed, passed, answerFaults())
}

func clientOf(config aws.Config) *ec2.Client {
	return ec2.NewFromConfig(config, func(o *ec2.Options) { o.RetryMaxAttempts = 1 })
}

// said returns an API's error code, or "yes" for success.
func said(err error) string {
	if answer, ok := errors.AsType[smithy.APIError](err); ok {
		return answer.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return "yes"
}

// make creates a usable volume of the given size.
func (a api) make(gib int32) string {
	a.Helper()
	v, err := a.CreateVolume(a.Context(), &ec2.CreateVolumeInput{AvailabilityZone: &a.zone, Size: &gib,
		VolumeType: types.VolumeTypeGp3})
	if err != nil {
		a.Fatal(err)
	}
	a.settled(*v.VolumeId)
	return *v.VolumeId
}

// settled waits until no operation is in progress on a volume, and returns it.
func (a api) settled(id string) types.Volume {
	a.Helper()
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		out, err := a.DescribeVolumes(a.Context(), &ec2.DescribeVolumesInput{VolumeIds: []string{id}})
		if err != nil || len(out.Volumes) != 1 {
			a.Fatalf("looking at %s: %v", id, err)
		}
		v := out.Volumes[0]
		way := slices.ContainsFunc(v.Attachments,
			func(t types.VolumeAttachment) bool { return t.State != types.VolumeAttachmentStateAttached })
		if !way && (v.State == types.VolumeStateAvailable || v.State == types.VolumeStateInUse) {
			return v
		}
	}
}

func (a api) attach(id, node, device string) error {
	_, err := a.AttachVolume(a.Context(), &ec2.AttachVolumeInput{VolumeId: &id, InstanceId: &node, Device: &device})
	if err == nil {
		a.settled(id)
	}
	return err
}

// attached returns a new volume that is attached to the first instance.
func (a api) attached(device string) string {
	a.Helper()
	id := a.make(4)
	if err := a.attach(id, a.nodes[0], device); err != nil {
		a.Fatal(err)
	}
	return id
}

func (a api) detach(id, node string) error {
	_, err := a.DetachVolume(a.Context(), &ec2.DetachVolumeInput{VolumeId: &id, InstanceId: &node})
	if err == nil {
		a.settled(id)
	}
	return err
}

func (a api) remove(id string) error {
	_, err := a.DeleteVolume(a.Context(), &ec2.DeleteVolumeInput{VolumeId: &id})
	return err
}

func (a api) snapshot(id string) *string {
	a.Helper()
	s, err := a.CreateSnapshot(a.Context(), &ec2.CreateSnapshotInput{VolumeId: &id})
	if err != nil {
		a.Fatal(err)
	}
	done := ec2.NewSnapshotCompletedWaiter(a.Client,
		func(o *ec2.SnapshotCompletedWaiterOptions) { o.MinDelay, o.MaxDelay = 20*time.Millisecond, time.Second })
	if err := done.Wait(a.Context(), &ec2.DescribeSnapshotsInput{SnapshotIds: []string{*s.SnapshotId}},
		time.Minute); err != nil {
		a.Fatal(err)
	}
	return s.SnapshotId
}
