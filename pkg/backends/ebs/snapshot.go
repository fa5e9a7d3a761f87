package ebs

import (
	"cmp"
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/batch"
	"github.com/stowage-csi/stowage/pkg/cloud/flight"
)

// CreateSnapshot begins a snapshot. Kinds: those of backends.Snapshotter.
func (b *backend) CreateSnapshot(ctx context.Context, spec backends.SnapshotSpec) (_ *backends.Snapshot, err error) {
	defer annotate(&err, "create snapshot", spec.Name)
	return b.taking.Do(ctx, flight.Op{Key: spec.Name, What: "taking snapshot " + spec.Name},
		func(ctx context.Context) (*backends.Snapshot, error) {
			return settled(ctx, &b.untaken, spec.Name,
				func() (*backends.Snapshot, error) { return b.newSnapshot(ctx, spec) })
		})
}

// newSnapshot begins a snapshot unless a snapshot of that name exists.
func (b *backend) newSnapshot(ctx context.Context, spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	began := time.Now()
	found, err := b.having(ctx, spec.Name)
	if err != nil {
		return nil, err
	}
	if found != nil {
		b.untaken.forget(spec.Name)
		return nil, cmp.Or(checkWhole(*found, backends.Exists),
			backends.Errorf(backends.Exists, "there is a snapshot %q already", spec.Name))
	}
	b.untaken.note(spec.Name, began)
	v, err := b.ownVolume(ctx, spec.Volume)
	if err != nil {
		return nil, err
	}
	p, err := snapshotParametersOf(spec.Parameters)
	if err != nil {
		return nil, err
	}
	if err := b.checkZones(ctx, p.fastZones()); err != nil {
		return nil, err
	}
	tags, err := b.tagsFor(snapshotNameTag, spec.Name, p.Tags, backends.Claim{})
	if err != nil {
		return nil, err
	}
	if b.raw(v.Tags) {
		tags[b.rawTag()] = "true"
	}
	if err := b.countTags(tags, mostTags); err != nil {
		return nil, err
	}
	made, own, err := b.takeSnapshot(ctx, spec, tags)
	if err != nil {
		return nil, err
	}
	if err := b.fulfil(ctx, made.Handle, p); err != nil {
		return nil, b.unfulfilled(ctx, made.Handle, own, err)
	}
	return made, nil
}

// takeSnapshot sends one request, since CreateSnapshot has no client token. It keeps the name reserved until EC2 shows
// the snapshot: otherwise the next request for the name would find none and create a second one. own reports whether
// this very request created the returned snapshot.
func (b *backend) takeSnapshot(ctx context.Context, spec backends.SnapshotSpec,
	tags map[string]string) (made *backends.Snapshot, own bool, err error) {
	out, err := flight.Finish(ctx, b.config.Timing.Call, func(ctx context.Context) (*ec2.CreateSnapshotOutput, error) {
		return b.once.CreateSnapshot(ctx, &ec2.CreateSnapshotInput{VolumeId: &spec.Volume,
			TagSpecifications: specification(types.ResourceTypeSnapshot, tags)})
	})
	asked := b.orGone(ctx, spec.Volume, ofEC2(err))
	if asked != nil && !mayArrive(asked) {
		return nil, false, asked
	}
	taken, err := b.appeared(ctx, spec.Name, out)
	if err != nil {
		b.untaken.forget(spec.Name) // It may show later.
		return nil, false, backends.Errorf(backends.Busy, "the snapshot was asked for and does not show: ask again: %w",
			cmp.Or(asked, err))
	}
	own = isOf(taken, out)
	if of := aws.ToString(taken.VolumeId); of != spec.Volume {
		return nil, own, b.yield(ctx, spec.Name, of, out)
	}
	if isFailed(taken) {
		return nil, own, b.abandon(ctx, taken, own)
	}
	return b.viewSnapshot(taken), own, nil
}

// appeared waits for the snapshot of the name even if its caller has left, since the request has been sent. It may find
// another snapshot than the one that the request created. The other one may be gone, and shown by an older read.
func (b *backend) appeared(ctx context.Context, name string, made *ec2.CreateSnapshotOutput) (types.Snapshot, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.config.Timing.Settle)
	defer cancel()
	for {
		found, err := b.snapshots.Until(ctx, "appear", name,
			func(found []types.Snapshot, err error) (bool, error) { return len(found) > 0, err })
		if err != nil {
			return types.Snapshot{}, err
		}
		s := *oldestSnapshot(found)
		if isOf(s, made) {
			return s, nil
		}
		if err := b.keeps(ctx, aws.ToString(s.SnapshotId)); !isGone(err) {
			return s, err
		}
	}
}

// isOf reports whether a request created the snapshot. If its answer was lost, made is nil.
func isOf(s types.Snapshot, made *ec2.CreateSnapshotOutput) bool {
	return made != nil && aws.ToString(made.SnapshotId) == aws.ToString(s.SnapshotId)
}

// having returns the snapshot that has a name, or nil while the name is free. A snapshot that a read shows may be gone
// all the same: FindSnapshot checks that. Kinds: those of keeps for a snapshot that no read shows, without NotFound.
func (b *backend) having(ctx context.Context, name string) (*types.Snapshot, error) {
	for {
		found, shown, err := b.findSnapshot(ctx, name)
		if err != nil || found == nil || shown {
			return found, err
		}
		if err := b.keeps(ctx, aws.ToString(found.SnapshotId)); !isGone(err) {
			return found, err
		}
	}
}

// findSnapshot returns the snapshot of that name, even a failed one, or nil when there is none. If no read shows the
// snapshot, findSnapshot returns a remembered one. That one may be newer than the read, so that CreateSnapshot would
// create a second one, or another process may have deleted it.
func (b *backend) findSnapshot(ctx context.Context, name string) (found *types.Snapshot, shown bool, err error) {
	results := batch.Each(ctx, []string{name}, batch.Options{Timeout: b.config.Timing.Read}, b.describeNamedSnapshots)
	if all := results[0].Value; len(all) > 0 || results[0].Err != nil {
		return oldestSnapshot(all), true, results[0].Err
	}
	if found = b.remembered(name); found == nil {
		return nil, false, nil
	}
	if _, young := b.kept.Lately(*found.SnapshotId, youngOwner); !young { // It may have been given to another cluster.
		_, err = b.querySnapshots(ctx, filter("snapshot-id", *found.SnapshotId))
	}
	return b.remembered(name), false, err
}

// remembered returns the snapshot of that name as a read has shown it in the last minutes, or nil.
func (b *backend) remembered(name string) *types.Snapshot {
	return oldestSnapshot(b.kept.Which(func(s types.Snapshot) bool {
		value, named := tag(s.Tags, snapshotNameTag)
		return named && value == tagValue(name) && b.owned("", s.Tags) == nil
	}))
}

// querySnapshots reads all pages of the account's snapshots that match the filters.
func (b *backend) querySnapshots(ctx context.Context, filters ...types.Filter) (all []types.Snapshot, err error) {
	pages := ec2.NewDescribeSnapshotsPaginator(b.api,
		&ec2.DescribeSnapshotsInput{Filters: filters, OwnerIds: []string{"self"}, MaxResults: aws.Int32(pageSize)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, ofEC2(err)
		}
		all = append(all, b.rememberSnapshots(page.Snapshots, page.ResultMetadata)...)
	}
	return all, nil
}

// describeNamedSnapshots looks for the snapshots of several names.
func (b *backend) describeNamedSnapshots(ctx context.Context,
	names []string) ([]batch.Result[[]types.Snapshot], error) {
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = tagValue(name)
	}
	found, err := b.querySnapshots(ctx, filter("tag:"+snapshotNameTag, values...),
		filter("tag:"+b.ownerTag(), b.cluster()))
	if err != nil {
		return nil, err
	}
	results := make([]batch.Result[[]types.Snapshot], len(names))
	for _, s := range found {
		value, _ := tag(s.Tags, snapshotNameTag)
		for i := range names {
			if values[i] == value {
				results[i].Value = append(results[i].Value, s)
			}
		}
	}
	return results, nil
}

// FindSnapshot returns the snapshot of that name, once it is as its class wants. Kinds: NotFound; Exists for one that
// failed; Busy while it is being created.
func (b *backend) FindSnapshot(ctx context.Context, spec backends.SnapshotSpec) (_ *backends.Snapshot, err error) {
	name := spec.Name
	defer annotate(&err, "find snapshot", name)
	if what, busy := b.taking.Under(name); busy {
		return nil, backends.Errorf(backends.Busy, "%s is under way: ask again", what)
	}
	found, err := b.thereNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := checkWhole(*found, backends.Exists); err != nil {
		return nil, err
	}
	if aws.ToString(found.VolumeId) == spec.Volume { // A snapshot of another volume is not the requested one.
		p, err := snapshotParametersOf(spec.Parameters)
		if err != nil {
			return nil, err
		}
		if err := b.oursKept(ctx, aws.ToString(found.SnapshotId)); err != nil {
			return nil, backends.Errorf(backends.Unavailable, "whose the snapshot is now is not known: ask again: %w", err)
		}
		if err := b.fulfil(ctx, aws.ToString(found.SnapshotId), p); err != nil {
			// A caller that gets a final error forgets the snapshot.
			return nil, backends.Errorf(backends.Unavailable, "the snapshot is there, but not as its class wants: %w", err)
		}
	}
	return b.viewSnapshot(*found), nil
}

// thereNamed returns the existing snapshot of that name. It looks for the next one only after one has certainly ended.
// Kinds: NotFound; Busy; Unavailable.
func (b *backend) thereNamed(ctx context.Context, name string) (*types.Snapshot, error) {
	for {
		found, _, err := b.findSnapshot(ctx, name)
		if err != nil {
			return nil, err
		}
		if found == nil {
			return nil, backends.Errorf(backends.NotFound, "there is no snapshot named %q", name)
		}
		if err := b.keeps(ctx, aws.ToString(found.SnapshotId)); !isGone(err) {
			return found, cmp.Or(err, b.staying(aws.ToString(found.SnapshotId)))
		}
	}
}

// GetSnapshot returns the snapshot with the handle. Kinds: NotFound; Unusable for one that failed.
func (b *backend) GetSnapshot(ctx context.Context, handle string) (_ *backends.Snapshot, err error) {
	defer annotate(&err, "get snapshot", handle)
	s, err := b.snapshot(ctx, handle)
	if err != nil {
		return nil, err
	}
	if err := b.keeps(ctx, handle); err != nil {
		return nil, err
	}
	if err := checkWhole(s, backends.Unusable); err != nil {
		return nil, err
	}
	return b.viewSnapshot(s), nil
}

// snapshot looks at a snapshot. Looks that do not show it prove nothing. Kinds: NotFound, also for a handle of another
// form; Unavailable while EC2 does not show it, and has not said that it is gone.
func (b *backend) snapshot(ctx context.Context, handle string) (types.Snapshot, error) {
	if !isID("snap", handle) || b.kept.Ended(handle) {
		return types.Snapshot{}, noSnapshot(handle)
	}
	found, err := b.querySnapshots(ctx, filter("snapshot-id", handle))
	if err != nil || len(found) > 0 {
		return first(found), err
	}
	if b.kept.Miss(handle) > b.config.Timing.Settle {
		return types.Snapshot{}, cmp.Or(b.provenGone(ctx, handle), noSnapshot(handle))
	}
	if s, ok := b.kept.Last(handle); ok {
		return s, nil
	}
	return types.Snapshot{}, unseenSnapshot(handle)
}

func unseenSnapshot(handle string) error {
	return backends.Errorf(backends.Unavailable, "snapshot %q: %w: ask again", handle, errUnseen)
}

func noSnapshot(handle string) error {
	return backends.Errorf(backends.NotFound, "there is no snapshot %q: handles are such as snap-0123456789abcdef0",
		handle)
}

// DeleteSnapshot removes a snapshot and its twins. Kinds: NotFound; InUse when an image of the account needs it;
// Unavailable when EC2 has not said whether it exists, and others have its name.
func (b *backend) DeleteSnapshot(ctx context.Context, handle string) (err error) {
	defer annotate(&err, "delete snapshot", handle)
	s, ok := b.kept.Last(handle)
	if !ok || b.owned(handle, s.Tags) != nil {
		if s, err = b.ownSnapshot(ctx, handle); err != nil {
			return err
		}
	}
	twins, err := b.twins(ctx, s)
	if err != nil {
		return err
	}
	if len(twins) > 0 { // If it is gone, so are its twins: another snapshot with its name is newer.
		if err := b.keeps(ctx, handle); err != nil {
			return err
		}
	}
	for _, id := range append(twins, handle) { // the requested one last, so that the call can be repeated
		err := b.oursKept(ctx, id) // The search for twins may have shown it.
		if id != handle && backends.Is(err, backends.Denied) {
			continue // It has been given to another cluster.
		}
		if err == nil {
			err = b.dropSnapshot(ctx, id)
		}
		if err != nil && (id == handle || !isGone(err)) {
			return err
		}
	}
	return nil
}

// dropSnapshot sends a deletion request. EC2's answer is the proof that the snapshot is gone.
func (b *backend) dropSnapshot(ctx context.Context, id string) error {
	err := b.finish(ctx, &b.deleting, id, "deleting snapshot "+id, func(ctx context.Context) error {
		_, err := b.once.DeleteSnapshot(ctx, &ec2.DeleteSnapshotInput{SnapshotId: &id})
		if err == nil { // The caller may have left already.
			b.ended(id)
		}
		b.unanswered(id, ofEC2(err))
		return err
	})
	b.lists.snapshots.without(id, err)
	return b.final(id, err)
}

// Restore creates a volume from a snapshot. Kinds: those of backends.Snapshotter.
func (b *backend) Restore(ctx context.Context, spec backends.Spec, snapshot string) (_ *backends.Volume, err error) {
	defer annotate(&err, "restore", spec.Name)
	return b.create(ctx, spec, func(ctx context.Context) (origin, error) {
		s, err := b.ownSnapshot(ctx, snapshot)
		if err != nil {
			return origin{}, err
		}
		if err := checkWhole(s, backends.Invalid); err != nil {
			return origin{}, err
		}
		if s.State != types.SnapshotStateCompleted {
			return origin{}, backends.Errorf(backends.Unavailable, "snapshot %s is not ready: it is %s", snapshot, s.State)
		}
		return origin{snapshot: snapshot, raw: b.raw(s.Tags), bytes: b.viewSnapshot(s).SizeBytes}, nil
	})
}

func (b *backend) viewSnapshot(s types.Snapshot) *backends.Snapshot {
	name, _ := tag(s.Tags, snapshotNameTag)
	return &backends.Snapshot{
		Handle: aws.ToString(s.SnapshotId), Name: tagText(name), Volume: aws.ToString(s.VolumeId),
		SizeBytes: int64(aws.ToInt32(s.VolumeSize)) * gib,
		CreatedAt: aws.ToTime(s.StartTime), Ready: s.State == types.SnapshotStateCompleted,
	}
}
