package ebs

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// Validate checks the combinations and the date, which no struct tag can (LockSnapshot in the API reference).
func (p *SnapshotParameters) Validate() error {
	if p.LockMode == "" && (p.LockDays != 0 || p.LockUntil != "" || p.LockCoolOff != 0) {
		return backends.Errorf(backends.Invalid,
			"lockDuration, lockExpirationDate and lockCoolOffPeriod go with lockMode only: give that too or leave them out")
	}
	if p.LockMode != "" && (p.LockDays == 0) == (p.LockUntil == "") {
		return backends.Errorf(backends.Invalid,
			"lockMode goes with either lockDuration or lockExpirationDate: give one of the two")
	}
	if p.LockCoolOff != 0 && p.LockMode != string(types.LockModeCompliance) {
		return backends.Errorf(backends.Invalid, "lockCoolOffPeriod goes with lockMode compliance only: leave it out")
	}
	if _, err := p.until(); err != nil {
		return backends.Errorf(backends.Invalid, "lockExpirationDate is %q: it must be such as 2030-12-31T00:00:00Z",
			secret.Option(p.LockUntil))
	}
	return nil
}

func (p *SnapshotParameters) until() (*time.Time, error) {
	if p.LockUntil == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, p.LockUntil)
	return &at, err
}

// fastZones returns the zones in which volumes of the snapshot must be fast at once.
func (p *SnapshotParameters) fastZones() []string {
	zones := strings.Split(strings.ReplaceAll(p.FastZones, " ", ""), ",")
	return slices.DeleteFunc(zones, func(zone string) bool { return zone == "" })
}

// checkZones refuses unknown zones before a snapshot is taken. Kinds: Invalid.
func (b *backend) checkZones(ctx context.Context, wanted []string) error {
	if len(wanted) == 0 {
		return nil
	}
	zones, err := b.zoneNames(ctx)
	if err != nil {
		return err
	}
	for _, zone := range wanted {
		if !slices.Contains(zones, zone) {
			return backends.Errorf(backends.Invalid, "fastSnapshotRestoreAvailabilityZones has %q: the region's zones are %q",
				secret.Option(zone), zones)
		}
	}
	return nil
}

// fulfil applies the class's settings to an existing snapshot, unless that is done already: the process may have ended
// in between.
func (b *backend) fulfil(ctx context.Context, id string, p SnapshotParameters) error {
	if zones := p.fastZones(); len(zones) > 0 {
		if err := b.enableFastRestore(ctx, id, zones); err != nil {
			return err
		}
	}
	if p.LockMode == "" {
		return nil
	}
	return b.lock(ctx, id, p)
}

// unfulfilled returns the error for a new snapshot that is not as its class wants. If a retry cannot help, the call's
// own snapshot is deleted, since no caller knows it. An earlier snapshot may have been handed out.
func (b *backend) unfulfilled(ctx context.Context, id string, own bool, why error) error {
	switch backends.KindOf(why) {
	case backends.Exhausted, backends.Invalid, backends.Denied:
	default:
		return why
	}
	if !own {
		return backends.Errorf(backends.Unavailable, "the snapshot is there, but not as its class wants: %w", why)
	}
	if err := b.dropSnapshot(ctx, id); err != nil && !isGone(err) {
		return backends.Errorf(backends.Unavailable, "%w; and the snapshot is still there: %w", why, err)
	}
	return why
}

func (b *backend) enableFastRestore(ctx context.Context, id string, zones []string) error {
	have, err := b.api.DescribeFastSnapshotRestores(ctx,
		&ec2.DescribeFastSnapshotRestoresInput{Filters: []types.Filter{filter("snapshot-id", id)}})
	if err != nil {
		return ofEC2(err)
	}
	for _, r := range have.FastSnapshotRestores {
		if r.State != types.FastSnapshotRestoreStateCodeDisabled && r.State != types.FastSnapshotRestoreStateCodeDisabling {
			zones = slices.DeleteFunc(zones, func(zone string) bool { return zone == aws.ToString(r.AvailabilityZone) })
		}
	}
	if len(zones) == 0 {
		return nil
	}
	return b.finish(ctx, &b.fulfilling, id, "enabling fast restore of snapshot "+id, func(ctx context.Context) error {
		out, err := b.once.EnableFastSnapshotRestores(ctx,
			&ec2.EnableFastSnapshotRestoresInput{AvailabilityZones: zones, SourceSnapshotIds: []string{id}})
		if err != nil {
			return err
		}
		return notEnabled(out.Unsuccessful)
	})
}

// notEnabled returns why fast restore was not enabled in a zone: usually the quota is used up, and others may free
// some.
func notEnabled(failures []types.EnableFastSnapshotRestoreErrorItem) error {
	for _, f := range failures {
		for _, e := range f.FastSnapshotRestoreStateErrors {
			if e.Error != nil {
				return backends.Errorf(backends.Exhausted, "fast restore of snapshot %s in zone %s: EC2 says %s: %s",
					aws.ToString(f.SnapshotId), aws.ToString(e.AvailabilityZone), aws.ToString(e.Error.Code),
					aws.ToString(e.Error.Message))
			}
		}
	}
	return nil
}

// lock locks a snapshot that is not locked. It leaves an existing lock alone: locking again would restart its time. So
// a read that does not know the snapshot yet decides nothing. Kinds: Unavailable then, and those of the requests.
func (b *backend) lock(ctx context.Context, id string, p SnapshotParameters) error {
	have, err := b.api.DescribeLockedSnapshots(ctx, &ec2.DescribeLockedSnapshotsInput{SnapshotIds: []string{id}})
	if err = ofEC2(err); isGone(err) {
		return backends.Errorf(backends.Unavailable, "snapshot %q: %w: ask again: %w", id, errUnseen, err)
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(have.Snapshots,
		func(s types.LockedSnapshotsInfo) bool { return s.LockState != types.LockStateExpired }) {
		return nil
	}
	until, err := p.until()
	if err != nil {
		return backends.Errorf(backends.Invalid, "lockExpirationDate: %w", err)
	}
	return b.finish(ctx, &b.fulfilling, id, "locking snapshot "+id, func(ctx context.Context) error {
		_, err := b.once.LockSnapshot(ctx, &ec2.LockSnapshotInput{
			SnapshotId: &id, LockMode: types.LockMode(p.LockMode), LockDuration: number(p.LockDays), ExpirationDate: until,
			CoolOffPeriod: number(p.LockCoolOff),
		})
		return err
	})
}
