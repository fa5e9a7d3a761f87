package moto

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// IDs that no volume, instance or snapshot has.
const (
	noVolume   = "vol-0fffffffffffffff0"
	noInstance = "i-0fffffffffffffff0"
	noSnapshot = "snap-0fffffffffffffff0"
)

// questions returns the requests that both APIs get, each on its own volumes.
func questions() map[string]func(a api) string {
	all := map[string]func(a api) string{}
	for _, some := range []map[string]func(a api) string{volumeQuestions(), attachmentQuestions(), modificationQuestions(),
		snapshotQuestions(), lookQuestions()} {
		for name, ask := range some {
			all[name] = ask
		}
	}
	return all
}

func volumeQuestions() map[string]func(a api) string {
	return map[string]func(a api) string{
		"a new volume": func(a api) string {
			v := a.settled(a.make(4))
			return fmt.Sprint(v.State, *v.Size, v.VolumeType, aws.ToInt32(v.Iops), aws.ToInt32(v.Throughput),
				aws.ToBool(v.Encrypted), *v.AvailabilityZone == a.zone, len(v.Attachments))
		},
		"a volume twice with one token": func(a api) string {
			in := &ec2.CreateVolumeInput{AvailabilityZone: &a.zone, Size: aws.Int32(4), ClientToken: aws.String("token-1")}
			one, err := a.CreateVolume(a.Context(), in)
			if err != nil {
				return said(err)
			}
			two, err := a.CreateVolume(a.Context(), in)
			if err != nil {
				return said(err)
			}
			return fmt.Sprint(*one.VolumeId == *two.VolumeId)
		},
		"a volume in no zone": func(a api) string {
			_, err := a.CreateVolume(a.Context(), &ec2.CreateVolumeInput{AvailabilityZone: aws.String("nowhere-1a"),
				Size: aws.Int32(4)})
			return said(err)
		},
		"a volume with too many operations a second": func(a api) string {
			_, err := a.CreateVolume(a.Context(), &ec2.CreateVolumeInput{AvailabilityZone: &a.zone, Size: aws.Int32(4),
				VolumeType: types.VolumeTypeGp3, Iops: aws.Int32(900_000)})
			return said(err)
		},
		"delete a volume":          func(a api) string { return said(a.remove(a.make(4))) },
		"delete what is not there": func(a api) string { return said(a.remove(noVolume)) },
		"delete what is no ID":     func(a api) string { return said(a.remove("a-volume")) },
		"delete a volume twice": func(a api) string {
			id := a.make(4)
			return said(a.remove(id)) + " " + goneOrNot(a.remove(id))
		},
		"delete an attached volume": func(a api) string { return said(a.remove(a.attached("/dev/xvdaa"))) },
		"tag what is not there":     func(a api) string { return a.tag(noVolume) },
		"tag a volume, and take it away": func(a api) string {
			id := a.make(4)
			if answer := a.tag(id); answer != "yes" {
				return answer
			}
			before := len(a.settled(id).Tags)
			// A tag with another value is not deleted.
			_, err := a.DeleteTags(a.Context(), &ec2.DeleteTagsInput{Resources: []string{id},
				Tags: []types.Tag{{Key: aws.String("key"), Value: aws.String("other")}}})
			other := len(a.settled(id).Tags)
			_, last := a.DeleteTags(a.Context(), &ec2.DeleteTagsInput{Resources: []string{id},
				Tags: []types.Tag{{Key: aws.String("key"), Value: aws.String("value")}}})
			return fmt.Sprint(before, said(err), other, said(last), len(a.settled(id).Tags))
		},
	}
}

func (a api) tag(id string) string {
	_, err := a.CreateTags(a.Context(), &ec2.CreateTagsInput{Resources: []string{id},
		Tags: []types.Tag{{Key: aws.String("key"), Value: aws.String("value")}}})
	return said(err)
}

// goneOrNot is for a volume that has just been deleted: whether the request is accepted again or the volume is gone
// depends on timing.
func goneOrNot(err error) string {
	if answer := said(err); answer != "yes" && answer != "InvalidVolume.NotFound" && answer != "IncorrectState" {
		return answer
	}
	return "gone"
}

func attachmentQuestions() map[string]func(a api) string {
	return map[string]func(a api) string{
		"attach a volume": func(a api) string {
			v := a.settled(a.attached("/dev/xvdab"))
			t := v.Attachments[0]
			return fmt.Sprint(v.State, t.State, *t.Device, *t.InstanceId == a.nodes[0], len(v.Attachments))
		},
		"attach twice to one instance": func(a api) string {
			return said(a.attach(a.attached("/dev/xvdac"), a.nodes[0], "/dev/xvdad"))
		},
		"attach to a second instance": func(a api) string {
			return said(a.attach(a.attached("/dev/xvdae"), a.nodes[1], "/dev/xvdae"))
		},
		"attach with a name that is taken": func(a api) string {
			a.attached("/dev/xvdaf")
			return said(a.attach(a.make(4), a.nodes[0], "/dev/xvdaf"))
		},
		"attach what is not there":     func(a api) string { return said(a.attach(noVolume, a.nodes[0], "/dev/xvdag")) },
		"attach to no instance":        func(a api) string { return said(a.attach(a.make(4), noInstance, "/dev/xvdag")) },
		"attach in another zone":       func(a api) string { return said(a.attach(a.elsewhere(), a.nodes[0], "/dev/xvdah")) },
		"detach what is not there":     func(a api) string { return said(a.detach(noVolume, a.nodes[0])) },
		"detach from no instance":      func(a api) string { return said(a.detach(a.make(4), noInstance)) },
		"detach what is not attached":  func(a api) string { return said(a.detach(a.make(4), a.nodes[0])) },
		"detach from another instance": func(a api) string { return said(a.detach(a.attached("/dev/xvdai"), a.nodes[1])) },
		"attach, detach and attach elsewhere": func(a api) string {
			id := a.attached("/dev/xvdaj")
			detached := said(a.detach(id, a.nodes[0]))
			state := a.settled(id).State
			return fmt.Sprint(detached, state, said(a.attach(id, a.nodes[1], "/dev/xvdaj")), a.settled(id).State)
		},
		"the names that an instance's disks have": func(a api) string {
			a.attached("/dev/xvdak")
			out, err := a.DescribeInstances(a.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{a.nodes[0]}})
			if err != nil {
				return said(err)
			}
			return fmt.Sprint(slices.ContainsFunc(out.Reservations[0].Instances[0].BlockDeviceMappings,
				func(m types.InstanceBlockDeviceMapping) bool { return *m.DeviceName == "/dev/xvdak" }))
		},
	}
}

// elsewhere creates a volume in another zone.
func (a api) elsewhere() string {
	a.zone = a.zone[:len(a.zone)-1] + "b"
	return a.make(4)
}

func modificationQuestions() map[string]func(a api) string {
	modify := func(a api, id string, edit func(*ec2.ModifyVolumeInput)) string {
		in := &ec2.ModifyVolumeInput{VolumeId: &id}
		edit(in)
		_, err := a.ModifyVolume(a.Context(), in)
		return said(err)
	}
	size := func(gib int32) func(*ec2.ModifyVolumeInput) {
		return func(in *ec2.ModifyVolumeInput) { in.Size = &gib }
	}
	return map[string]func(a api) string{
		"grow a volume":           func(a api) string { return modify(a, a.make(4), size(8)) },
		"grow an attached volume": func(a api) string { return modify(a, a.attached("/dev/xvdal"), size(8)) },
		"shrink a volume":         func(a api) string { return modify(a, a.make(8), size(4)) },
		"grow what is not there":  func(a api) string { return modify(a, noVolume, size(8)) },
		"grow beyond all limits":  func(a api) string { return modify(a, a.make(4), size(1_000_000)) },
		"more operations a second": func(a api) string {
			id := a.make(4)
			answer := modify(a, id,
				func(in *ec2.ModifyVolumeInput) { in.VolumeType, in.Iops = types.VolumeTypeIo2, aws.Int32(200) })
			if answer != "yes" {
				return answer
			}
			for range 100 { // It takes a moment.
				if v := a.settled(id); v.VolumeType == types.VolumeTypeIo2 && aws.ToInt32(v.Iops) == 200 {
					return "seen"
				}
			}
			v := a.settled(id)
			return fmt.Sprint(v.VolumeType, " ", aws.ToInt32(v.Iops))
		},
		"another type": func(a api) string {
			return modify(a, a.make(4),
				func(in *ec2.ModifyVolumeInput) { in.VolumeType, in.Iops = types.VolumeTypeIo2, aws.Int32(200) })
		},
	}
}

func snapshotQuestions() map[string]func(a api) string {
	return map[string]func(a api) string{
		"a snapshot of no volume": func(a api) string {
			_, err := a.CreateSnapshot(a.Context(), &ec2.CreateSnapshotInput{VolumeId: aws.String(noVolume)})
			return said(err)
		},
		"a snapshot, after its volume is gone": func(a api) string {
			id := a.make(4)
			s := a.snapshot(id)
			if err := a.remove(id); err != nil {
				return said(err)
			}
			out, err := a.DescribeSnapshots(a.Context(), &ec2.DescribeSnapshotsInput{SnapshotIds: []string{*s},
				OwnerIds: []string{"self"}})
			if err != nil {
				return said(err)
			}
			return fmt.Sprint(len(out.Snapshots), out.Snapshots[0].State, *out.Snapshots[0].VolumeSize,
				*out.Snapshots[0].VolumeId == id)
		},
		"delete no snapshot": func(a api) string {
			_, err := a.DeleteSnapshot(a.Context(), &ec2.DeleteSnapshotInput{SnapshotId: aws.String(noSnapshot)})
			return said(err)
		},
		"restore a snapshot":                  func(a api) string { return a.restore(a.snapshot(a.make(4)), nil) },
		"restore a snapshot to a larger one":  func(a api) string { return a.restore(a.snapshot(a.make(4)), aws.Int32(8)) },
		"restore a snapshot to a smaller one": func(a api) string { return a.restore(a.snapshot(a.make(8)), aws.Int32(4)) },
		"restore no snapshot":                 func(a api) string { return a.restore(aws.String(noSnapshot), aws.Int32(4)) },
		"copy a volume": func(a api) string {
			_, err := a.CopyVolumes(a.Context(), &ec2.CopyVolumesInput{SourceVolumeId: aws.String(a.make(4))})
			return said(err)
		},
	}
}

func (a api) restore(snapshot *string, gib *int32) string {
	v, err := a.CreateVolume(a.Context(), &ec2.CreateVolumeInput{AvailabilityZone: &a.zone, SnapshotId: snapshot,
		Size: gib})
	if err != nil {
		return said(err)
	}
	made := a.settled(*v.VolumeId)
	return fmt.Sprint(*made.Size, aws.ToString(made.SnapshotId) == *snapshot)
}

func lookQuestions() map[string]func(a api) string {
	return map[string]func(a api) string{
		"look at what is not there, by ID": func(a api) string {
			_, err := a.DescribeVolumes(a.Context(), &ec2.DescribeVolumesInput{VolumeIds: []string{a.make(4), noVolume}})
			return said(err)
		},
		"look at what is not there, by a filter": func(a api) string {
			return a.count(types.Filter{Name: aws.String("volume-id"), Values: []string{a.make(4), noVolume}})
		},
		"look for a tag": func(a api) string {
			for range 2 {
				v, err := a.CreateVolume(a.Context(), &ec2.CreateVolumeInput{AvailabilityZone: &a.zone, Size: aws.Int32(4),
					TagSpecifications: []types.TagSpecification{
						{ResourceType: types.ResourceTypeVolume, Tags: []types.Tag{{Key: aws.String("name"), Value: aws.String("sought")},
							{Key: aws.String("of"), Value: aws.String("me")}}}}})
				if err != nil {
					return said(err)
				}
				a.settled(*v.VolumeId)
			}
			one, none := types.Filter{Name: aws.String("tag:name"), Values: []string{"other", "sought"}},
				types.Filter{Name: aws.String("tag:of"), Values: []string{"you"}}
			return a.count(one) + " " + a.count(one, none)
		},
		"look at no instance": func(a api) string {
			_, err := a.DescribeInstances(a.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{noInstance}})
			return said(err)
		},
		"a page": func(a api) string {
			for range 6 {
				a.make(4)
			}
			out, err := a.DescribeVolumes(a.Context(), &ec2.DescribeVolumesInput{MaxResults: aws.Int32(5)})
			if err != nil {
				return said(err)
			}
			return fmt.Sprint(len(out.Volumes), aws.ToString(out.NextToken) != "")
		},
	}
}

func (a api) count(filters ...types.Filter) string {
	out, err := a.DescribeVolumes(a.Context(), &ec2.DescribeVolumesInput{Filters: filters})
	if err != nil {
		return said(err)
	}
	return fmt.Sprint(len(out.Volumes))
}
