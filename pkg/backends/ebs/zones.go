package ebs

import (
	"context"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/flight"
)

// zones caches the region's zones. They change once in years.
type zones struct {
	mu    sync.Mutex
	names []string
	at    time.Time

	asking flight.Group[[]string] // one key: there is one list
}

const zonesAge = time.Hour

// zoneNames lists the region's zones.
func (b *backend) zoneNames(ctx context.Context) ([]string, error) {
	b.zones.mu.Lock()
	names, at := b.zones.names, b.zones.at
	b.zones.mu.Unlock()
	if len(names) > 0 && time.Since(at) < zonesAge {
		return names, nil
	}
	op := flight.Op{Key: "zones", What: "listing the region's zones", Join: true}
	return b.zones.asking.Do(ctx, op, b.askZones)
}

func (b *backend) askZones(ctx context.Context) (names []string, err error) {
	// A request that hangs must end by itself: some caller may always be waiting for it.
	ctx, cancel := context.WithTimeout(ctx, b.config.Timing.Read)
	defer cancel()
	out, err := b.api.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
	if err != nil {
		return nil, ofEC2(err)
	}
	for _, zone := range out.AvailabilityZones {
		names = append(names, aws.ToString(zone.ZoneName))
	}
	slices.Sort(names)
	b.zones.mu.Lock()
	defer b.zones.mu.Unlock()
	b.zones.names, b.zones.at = names, time.Now()
	return names, nil
}

// zone chooses the zone of a new volume: the first preference that the requirement allows, or one derived from the
// name, so that many volumes spread and a repeated request gets the same zone. Kinds: Exhausted when no zone is
// allowed.
func (b *backend) zone(ctx context.Context, name string, where backends.TopologyRequirement) (string, error) {
	all, err := b.zoneNames(ctx)
	if err != nil {
		return "", err
	}
	allowed := slices.DeleteFunc(slices.Clone(all), func(zone string) bool { return !where.Allows(b.place(zone)) })
	if len(allowed) == 0 {
		return "", backends.Errorf(backends.Exhausted, "no zone of the region meets the topology %v: there are %q",
			where.Requisite, all)
	}
	for _, preferred := range where.Preferred {
		if i := slices.IndexFunc(allowed, func(zone string) bool { return b.place(zone).Within(preferred) }); i >= 0 {
			return allowed[i], nil
		}
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(name)) // It never fails.
	return allowed[hash.Sum32()%uint32(len(allowed))], nil
}
