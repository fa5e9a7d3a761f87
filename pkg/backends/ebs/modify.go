package ebs

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/flight"
)

// changes are modifications that are collected per volume. EC2 requires hours between two modifications of a volume, so
// growing and changing it at about the same time must be one request.
type changes struct {
	mu      sync.Mutex
	pending map[string]*change // by ID
}

// change is the modification of a volume that several callers want.
type change struct {
	gib int64 // at least; 0 for any
	Mutable
}

// merge adds another caller's change. It returns false for a contradiction.
func (c *change) merge(other change) bool {
	if differ(c.Type, other.Type) || differ(c.IOPS, other.IOPS) || differ(c.IOPSPerGB, other.IOPSPerGB) ||
		differ(c.Throughput, other.Throughput) {
		return false
	}
	if c.IOPS != nil && other.IOPSPerGB != nil || c.IOPSPerGB != nil && other.IOPS != nil {
		return false
	}
	c.gib = max(c.gib, other.gib)
	set(&c.Type, other.Type)
	set(&c.IOPS, other.IOPS)
	set(&c.IOPSPerGB, other.IOPSPerGB)
	set(&c.Throughput, other.Throughput)
	return true
}

func differ[T comparable](a, b *T) bool { return a != nil && b != nil && *a != *b }

func set[T any](to **T, value *T) {
	if value != nil {
		*to = value
	}
}

// Expand grows a volume. Kinds: NotFound; OutOfRange; Exhausted; InUse while EC2 makes the volume wait for its next
// modification.
func (b *backend) Expand(ctx context.Context, handle string,
	size backends.CapacityRange) (_ backends.Expansion, err error) {
	defer annotate(&err, "expand", handle)
	v, err := b.ownVolume(ctx, handle)
	if err != nil {
		return backends.Expansion{}, err
	}
	had := b.view(v).CapacityBytes
	bytes, err := size.Round(had, had, gib)
	if err != nil {
		return backends.Expansion{}, err
	}
	if l, err := rulesOf(string(v.VolumeType)); err == nil && bytes > had && bytes/gib > l.mostGiB {
		return backends.Expansion{}, backends.Errorf(backends.OutOfRange, "a volume of type %s has at most %d GiB, not %d",
			v.VolumeType, l.mostGiB, bytes/gib)
	}
	if bytes > had {
		if v, err = b.modify(ctx, handle, change{gib: bytes / gib}); err != nil {
			return backends.Expansion{}, err
		}
	}
	return backends.Expansion{CapacityBytes: b.view(v).CapacityBytes, NodeExpansion: true}, nil
}

// Modify changes a volume's type and performance. Kinds: NotFound; Invalid; Exhausted and InUse as Expand.
func (b *backend) Modify(ctx context.Context, handle string, mutable any) (err error) {
	defer annotate(&err, "modify", handle)
	m, err := backends.Given[Mutable](mutable)
	if err != nil {
		return err
	}
	v, err := b.ownVolume(ctx, handle)
	if err != nil {
		return err
	}
	want := change{Mutable: m}
	if want.met(v) {
		if v, err = b.asOfNow(ctx, v); err != nil || want.met(v) {
			return err
		}
	}
	_, err = b.modify(ctx, handle, want)
	return err
}

// shapeOf returns a volume's shape.
func shapeOf(v types.Volume) shape {
	s := shape{kind: string(v.VolumeType), gib: int64(aws.ToInt32(v.Size)), iops: int64(aws.ToInt32(v.Iops)),
		throughput: int64(aws.ToInt32(v.Throughput))}
	if l, err := rulesOf(s.kind); err == nil && l.mostIOPS == 0 {
		s.iops = 0 // EC2 reports the baseline of gp2 there
	}
	return s
}

// modify joins the pending change of the volume, and waits until the volume is as wanted.
func (b *backend) modify(ctx context.Context, id string, want change) (types.Volume, error) {
	joined, ok := b.join(id, want)
	if !ok {
		return types.Volume{}, backends.Errorf(backends.Busy,
			"another modification is about to begin that contradicts this one: ask again")
	}
	defer b.drop(id, joined) // even after a panic
	made, err := b.modifying.Do(ctx, flight.Op{Key: id, What: "modifying volume " + id, Join: true},
		func(ctx context.Context) (outcome, error) {
			return b.change(ctx, id)
		})
	switch {
	case err == nil && want.met(made.volume), backends.Is(err, backends.Busy), backends.Is(err, backends.Unavailable):
		return made.volume, err
	case made.of != joined: // The request was sent before. EC2 has refused another caller's change.
		return made.volume, backends.Errorf(backends.Busy, "another modification was under way: ask again")
	}
	return made.volume, cmp.Or(err, want.target(made.volume).check(), made.refusal,
		backends.Errorf(backends.Busy, "another modification was under way: ask again"))
}

func (b *backend) join(id string, want change) (*change, bool) {
	b.changes.mu.Lock()
	defer b.changes.mu.Unlock()
	pending, ok := b.changes.pending[id]
	if !ok {
		pending = &change{}
		b.changes.pending[id] = pending
	}
	return pending, pending.merge(want)
}

// drop withdraws a change that was collected too late. Other callers that joined it are told to retry.
func (b *backend) drop(id string, joined *change) {
	b.changes.mu.Lock()
	defer b.changes.mu.Unlock()
	if b.changes.pending[id] == joined {
		delete(b.changes.pending, id)
	}
}

// take ends the collection: no caller joins the returned change any more.
func (b *backend) take(id string) *change {
	b.changes.mu.Lock()
	defer b.changes.mu.Unlock()
	pending, ok := b.changes.pending[id]
	if !ok {
		return &change{}
	}
	delete(b.changes.pending, id)
	return pending
}

// met reports whether the volume is as wanted.
func (c change) met(v types.Volume) bool {
	have := shapeOf(v)
	return have.gib >= c.gib && have.with(c.Mutable) == have
}

// target returns the wanted shape of the volume.
func (c change) target(v types.Volume) shape {
	s := shapeOf(v)
	s.gib = max(s.gib, c.gib)
	return s.with(c.Mutable)
}

// possible returns the part of the change that the volume can have. A change of performance that breaks EC2's rules
// must not keep the volume from growing.
func (c change) possible(v types.Volume) (change, error) {
	err := c.target(v).check()
	if grow := (change{gib: c.gib}); err != nil && c.gib != 0 && grow.target(v).check() == nil {
		return grow, nil
	}
	return c, err
}

// change collects changes for a moment, and makes one modification of them.
func (b *backend) change(ctx context.Context, id string) (outcome, error) {
	select {
	case <-time.After(b.config.Timing.Gather):
	case <-ctx.Done():
		return outcome{}, backends.Errorf(backends.Busy, "not begun, because the request has ended: %w", ctx.Err())
	}
	gathered := b.take(id)
	made, err := b.apply(ctx, id, *gathered)
	made.of = gathered
	return made, err
}

// apply makes one modification.
func (b *backend) apply(ctx context.Context, id string, want change) (outcome, error) {
	v, err := b.ownVolume(ctx, id) // Its callers have seen the owner before they waited.
	if err != nil {
		return outcome{}, err
	}
	v, want, err = b.judge(ctx, v, want)
	if err != nil || want.met(v) {
		return outcome{volume: v}, err
	}
	made, err := b.send(ctx, v, want)
	if refusesPart(err) {
		return b.sendParts(ctx, v, want, err)
	}
	return outcome{volume: made}, err
}

// send sends the request for one modification. Kinds: those of ours and of changed.
func (b *backend) send(ctx context.Context, v types.Volume, want change) (types.Volume, error) {
	if _, err := b.ours(ctx, aws.ToString(v.VolumeId)); err != nil {
		return v, err
	}
	_, err := flight.Finish(ctx, b.config.Timing.Call, func(ctx context.Context) (*ec2.ModifyVolumeOutput, error) {
		return b.once.ModifyVolume(ctx, want.request(v))
	})
	return b.changed(ctx, v, want, err)
}

// judge returns the part of the change that the volume can have. If a read would rule the request out, judge checks the
// current volume, because the read may be from before another change. A size that is large enough stays so. An older
// size would give other operations per second. Kinds: those of possible, and of asOfNow.
func (b *backend) judge(ctx context.Context, v types.Volume, want change) (types.Volume, change, error) {
	possible, err := want.possible(v)
	if err == nil && possible.Mutable == want.Mutable && want.IOPSPerGB == nil &&
		(!want.met(v) || want.Mutable == Mutable{}) {
		return v, want, nil
	}
	if v, err = b.asOfNow(ctx, v); err != nil {
		return v, want, err
	}
	want, err = want.possible(v)
	return v, want, err
}

// request asks for the wanted values only: other values from a read may be out of date, and would undo a later change.
// With another type, it keeps the performance that the type supports, which EC2 would not keep.
func (c change) request(v types.Volume) *ec2.ModifyVolumeInput {
	target, input := c.target(v), &ec2.ModifyVolumeInput{VolumeId: v.VolumeId}
	if c.gib != 0 {
		input.Size = number(target.gib)
	}
	if c.Type != nil && *c.Type != string(v.VolumeType) {
		input.VolumeType, input.Iops, input.Throughput = types.VolumeType(*c.Type), number(target.iops),
			number(target.throughput)
	}
	if c.IOPS != nil || c.IOPSPerGB != nil {
		input.Iops = number(target.iops)
	}
	if c.Throughput != nil {
		input.Throughput = number(target.throughput)
	}
	return input
}

// changed waits until the volume is as wanted, if EC2's answer to the request allows that.
func (b *backend) changed(ctx context.Context, v types.Volume, want change, answer error) (types.Volume, error) {
	id := aws.ToString(v.VolumeId)
	switch code := codeOf(answer); {
	case answer == nil:
		return b.madeSo(ctx, id, want)
	case code == "IncorrectModificationState":
		return b.changing(ctx, v, want, answer)
	case code == "InvalidParameterValue":
		return b.refusedFor(ctx, v, want, answer)
	case code == "VolumeModificationRateExceeded":
		// The recent change may be the wanted one, by a request whose answer was lost.
		if now, err := b.asOfNow(ctx, v); err != nil || want.met(now) {
			return now, err
		}
		// Unlike with Exhausted, the request can be met later. Unlike with Busy, the caller is not bound to it until then.
		return v, backends.Errorf(backends.InUse,
			"the volume was changed a short while ago, and EC2 takes the next one some hours after it: "+
				"ask again later: %w", ofEC2(answer))
	}
	return v, b.orGone(ctx, id, ofEC2(answer))
}
