package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"

	"github.com/stowage-csi/stowage/tests/cloud/moto"
)

// floor holds the durations of requests that only the SDK makes.
type floor struct {
	client   *ec2.Client
	instance string
	look     series
	change   map[string]*series // by phase
	many     map[string]float64 // changes a second with as many in flight as for the driver, by phase
}

func newFloor(url, instance string) *floor {
	f := &floor{client: ec2.NewFromConfig(moto.Config(url)), instance: instance, change: map[string]*series{},
		many: map[string]float64{}}
	for _, phase := range phases() {
		f.change[phase] = &series{}
	}
	return f
}

// measure adds measurements to the series.
func (f *floor) measure(ctx context.Context, rounds int) error {
	for range rounds {
		if err := f.life(ctx); err != nil {
			return fmt.Errorf("measuring the floor: %w", err)
		}
	}
	return nil
}

// measureMany finds the maximum number of changes a second in moto, without reads.
func (f *floor) measureMany(ctx context.Context, volumes, inFlight int) error {
	ids := make([]*string, volumes)
	for _, phase := range phases() {
		began := time.Now()
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(inFlight)
		for i := range ids {
			group.Go(f.steps(ctx, &ids[i], i)[phase])
		}
		if err := group.Wait(); err != nil {
			return fmt.Errorf("measuring the floor: %w", err)
		}
		f.many[phase] = float64(volumes) / time.Since(began).Seconds()
	}
	return nil
}

// life takes a volume through its life, with a read after each change.
func (f *floor) life(ctx context.Context) error {
	var id *string
	steps := f.steps(ctx, &id, 0)
	for _, phase := range phases() {
		if err := f.change[phase].time(steps[phase]); err != nil {
			return err
		}
		err := f.look.time(func() error {
			_, err := f.client.DescribeVolumes(ctx,
				&ec2.DescribeVolumesInput{Filters: []types.Filter{{Name: aws.String("volume-id"), Values: []string{*id}}}})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// steps returns the changes of a volume's life, by phase. The first sets the ID. number selects the device name: moto
// identifies an instance's disks by their names.
func (f *floor) steps(ctx context.Context, id **string, number int) map[string]func() error {
	return map[string]func() error{
		create: func() error {
			v, err := f.client.CreateVolume(ctx, &ec2.CreateVolumeInput{AvailabilityZone: aws.String(moto.Zone),
				Size: aws.Int32(4), VolumeType: types.VolumeTypeGp3})
			if err == nil {
				*id = v.VolumeId
			}
			return err
		},
		attach: func() error {
			_, err := f.client.AttachVolume(ctx, &ec2.AttachVolumeInput{VolumeId: *id, InstanceId: &f.instance,
				Device: aws.String(fmt.Sprint("/dev/xvdz", number))})
			return err
		},
		detach: func() error {
			_, err := f.client.DetachVolume(ctx, &ec2.DetachVolumeInput{VolumeId: *id, InstanceId: &f.instance})
			return err
		},
		remove: func() error {
			_, err := f.client.DeleteVolume(ctx, &ec2.DeleteVolumeInput{VolumeId: *id})
			return err
		},
	}
}

// needed returns the duration of the requests that a phase needs: a read, the change, and a read.
func (f *floor) needed(phase string) time.Duration {
	return 2*f.look.median() + f.change[phase].median()
}
