package ebs

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/attach"
	"github.com/stowage-csi/stowage/pkg/cloud/batch"
	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/cloud/known"
	"github.com/stowage-csi/stowage/pkg/cloud/names"
	"github.com/stowage-csi/stowage/pkg/cloud/pace"
	"github.com/stowage-csi/stowage/pkg/cloud/token"
	"github.com/stowage-csi/stowage/pkg/cloud/wait"
)

// mostFiltered is how many values a filter takes ("Filtering", 200).
const mostFiltered = 200

// backend is the controller side. Its methods are in the files that are named after their tasks.
type backend struct {
	driver string
	config Config
	api    *ec2.Client // for reads: retries failures for a while
	once   *ec2.Client // for changes: retries only requests that EC2 refused for their rate
	pace   *pace.Pacer
	sent   *requests // by both clients
	began  time.Time // when the process began
	log    *slog.Logger

	tokens     token.Tokens
	instances  *batch.Batcher[string, types.Instance] // by ID
	volumes    *wait.Waiter[string, types.Volume]     // by ID
	named      *wait.Waiter[string, []types.Volume]   // by name
	snapshots  *wait.Waiter[string, []types.Snapshot] // by name
	making     flight.Group[*backends.Volume]         // by name
	taking     flight.Group[*backends.Snapshot]       // by name
	deleting   flight.Group[struct{}]                 // by ID, volumes and snapshots
	dying      recent                                 // deletions whose answer was lost, by ID
	born       recent                                 // things created a moment ago, by ID
	told       recent                                 // things that the log has warned about, by ID
	unmade     refusals                               // volumes
	untaken    refusals                               // snapshots
	fulfilling flight.Group[struct{}]                 // by ID of the snapshot
	modifying  flight.Group[outcome]                  // by ID
	changes    changes
	attach     *attach.Machine
	zones      zones
	lists      lists
	shown      known.Things[types.Volume]   // by ID
	kept       known.Things[types.Snapshot] // by ID
}

func newBackend(driver string, config Config, log *slog.Logger) *backend {
	t := config.Timing
	b := &backend{driver: driver, config: config, log: log, began: time.Now(), sent: newRequests()}
	b.api = ec2.NewFromConfig(config.AWS, func(o *ec2.Options) {
		o.Retryer = again(t.Most / 10)
		o.APIOptions = append(o.APIOptions, causes, b.sent.measure)
	})
	b.pace = pace.New(config.rateOf)
	b.once = ec2.NewFromConfig(config.AWS, func(o *ec2.Options) {
		o.Retryer = refusedOnly(t.Most)
		o.APIOptions = append(o.APIOptions, b.paced, causes, b.sent.measure)
	})
	const crowd = 100 * time.Millisecond // half of it for names, because a volume needs one look by name, not two
	asked := batch.Options{Max: mostFiltered, Timeout: t.Read, Slow: t.Read / 10, Named: mentions}
	looks := wait.Options{Batch: asked, Least: t.Least, Most: t.Most, Typical: t.Most / 10, Slow: asked.Slow,
		Gap: b.gap(13*time.Second, crowd)}
	b.instances = batch.New(asked, b.describeInstances)
	b.volumes = wait.New(looks, b.describe)
	looks.Gap = b.gap(20*time.Second, crowd/2)
	b.named = wait.New(looks, b.describeNamed)
	b.snapshots = wait.New(looks, b.describeNamedSnapshots)
	b.changes.pending = map[string]*change{}
	b.dying.while, b.born.while, b.told.while = t.Settle, t.Settle, toldAgain
	b.unmade.settle, b.untaken.settle = t.Settle, t.Settle
	b.attach = attach.New(adapter{b}, attach.Options{PerNode: 16, InAll: 128, Timeout: t.Call, Settle: t.Settle,
		Tick: t.Tick, Now: adapter{b}.now, Names: names.New(deviceNames()), Remember: 5 * t.Settle})
	return b
}

// again returns a Retryer that retries failures, with pauses of at most longest. Reads must not take long: other
// callers wait for their end, and a caller that still wants an answer retries.
func again(longest time.Duration) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = longest })
}

// refusedOnly returns a Retryer that retries only requests that EC2 refused for their rate. Any other request may have
// had its effect.
func refusedOnly(longest time.Duration) aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxBackoff = longest
		o.Retryables = []retry.IsErrorRetryable{retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}}
	})
}

// deviceNames returns the names under which disks are attached, as many as the largest limit of an instance: /dev/xvdaa
// to /dev/xvddx, which is the last that EC2 accepts, and then /dev/sdb to /dev/sdz. aws-ebs-csi-driver uses the same
// names (its NameAllocator says why).
func deviceNames() (names []string) {
	for first := 'a'; first <= 'd'; first++ {
		for second := 'a'; second <= 'z' && (first < 'd' || second <= 'x'); second++ {
			names = append(names, fmt.Sprintf("/dev/xvd%c%c", first, second))
		}
	}
	for letter := 'b'; letter <= 'z'; letter++ {
		names = append(names, fmt.Sprintf("/dev/sd%c", letter))
	}
	return names
}

// finish makes a request that is completed even if its caller leaves. It runs one operation on the thing at a time, and
// callers with the same operation share it. Kinds: Busy when the caller's time ends first; those of the request.
func (b *backend) finish(ctx context.Context, group *flight.Group[struct{}], id, what string,
	request func(ctx context.Context) error) error {
	_, err := group.Do(ctx, flight.Op{Key: id, What: what, Join: true}, func(ctx context.Context) (struct{}, error) {
		return flight.Finish(ctx, b.config.Timing.Call,
			func(ctx context.Context) (struct{}, error) { return struct{}{}, ofEC2(request(ctx)) })
	})
	return b.orGone(ctx, id, err)
}

// filter returns a filter of a Describe request.
func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

// query reads all pages of the volumes that match the filters.
func (b *backend) query(ctx context.Context, filters ...types.Filter) (all []types.Volume, err error) {
	pages := ec2.NewDescribeVolumesPaginator(b.api, &ec2.DescribeVolumesInput{Filters: filters,
		MaxResults: aws.Int32(pageSize)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, ofEC2(err)
		}
		all = append(all, b.remember(page.Volumes, page.ResultMetadata)...)
	}
	return all, nil
}

// pageSize is how many results one request asks for; EC2 allows 1000.
const pageSize = 500

// describe looks at several volumes. It uses a filter, whose answer omits a volume that EC2 does not show. Such a
// volume would fail a request by IDs as a whole.
func (b *backend) describe(ctx context.Context, ids []string) ([]batch.Result[types.Volume], error) {
	found, err := b.query(ctx, filter("volume-id", ids...))
	if err != nil {
		return nil, err
	}
	byID := make(map[string]types.Volume, len(found))
	for _, v := range found {
		byID[aws.ToString(v.VolumeId)] = v
	}
	results := make([]batch.Result[types.Volume], len(ids))
	for i, id := range ids {
		v, ok := byID[id]
		if results[i].Value = v; !ok {
			results[i].Err = b.absent(id)
		}
	}
	return results, nil
}

// describeNamed looks for the volumes of several names. It omits volumes that are being deleted or gone.
func (b *backend) describeNamed(ctx context.Context, names []string) ([]batch.Result[[]types.Volume], error) {
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = tagValue(name)
	}
	found, err := b.query(ctx, filter("tag:"+volumeNameTag, values...), filter("tag:"+b.ownerTag(), b.cluster()))
	if err != nil {
		return nil, err
	}
	results := make([]batch.Result[[]types.Volume], len(names))
	for _, v := range found {
		value, _ := tag(v.Tags, volumeNameTag)
		for i := range names {
			if values[i] == value && v.State != types.VolumeStateDeleting && v.State != types.VolumeStateDeleted {
				results[i].Value = append(results[i].Value, v)
			}
		}
	}
	return results, nil
}

// describeInstances looks at several instances. A missing instance fails the request, which is then made in parts.
func (b *backend) describeInstances(ctx context.Context, ids []string) ([]batch.Result[types.Instance], error) {
	out, err := b.api.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: ids})
	if err != nil {
		return nil, ofEC2(err)
	}
	byID := map[string]types.Instance{}
	for _, r := range out.Reservations {
		for _, i := range r.Instances {
			byID[aws.ToString(i.InstanceId)] = i
		}
	}
	results := make([]batch.Result[types.Instance], len(ids))
	for i, id := range ids {
		instance, ok := byID[id]
		if results[i].Value = instance; !ok {
			results[i].Err = backends.Errorf(backends.NotFound, "there is no instance %q", id)
		}
	}
	return results, nil
}
