package ebs

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// outcome is the outcome of a modification for all callers that wanted a part of it.
type outcome struct {
	of      *change // the collected change; a caller that joined another one came late
	volume  types.Volume
	refusal error // why EC2 refused the rest, if it did
}

// refusesPart reports whether EC2's refusal of a modification is final, so that a part of it may be possible.
func refusesPart(err error) bool {
	switch backends.KindOf(err) {
	case backends.Invalid, backends.OutOfRange, backends.Exhausted:
		return err != nil
	default:
		return false
	}
}

// sendParts tries the parts of a change, after EC2 has refused it as a whole: one impossible part must not block the
// other. EC2 accepts only one of them. Growing comes first, since a full volume cannot wait.
func (b *backend) sendParts(ctx context.Context, v types.Volume, want change, refusal error) (outcome, error) {
	if want.gib == 0 || want.Mutable == (Mutable{}) {
		return outcome{}, refusal
	}
	for _, part := range []change{{gib: want.gib}, {Mutable: want.Mutable}} {
		if part.met(v) {
			continue
		}
		made, err := b.send(ctx, v, part)
		if err == nil {
			return outcome{volume: made, refusal: refusal}, nil
		}
		if !refusesPart(err) { // It may have been done.
			return outcome{}, err
		}
	}
	return outcome{}, refusal
}

// madeSo waits until an accepted modification shows. A read that shows the wanted type and performance may be from an
// earlier time at which the volume had them already; a size never goes back.
func (b *backend) madeSo(ctx context.Context, id string, want change) (types.Volume, error) {
	for {
		v, err := b.volumes.Until(ctx, "modify", id,
			func(v types.Volume, err error) (bool, error) { return err == nil && want.met(v), err })
		if err != nil || want.Mutable == (Mutable{}) {
			return v, b.proven(ctx, id, err)
		}
		if v, err = b.asOfNow(ctx, v); err != nil || want.met(v) {
			return v, err
		}
		select {
		case <-time.After(b.config.Timing.Most):
		case <-ctx.Done():
			return v, backends.Errorf(backends.Busy, "the volume is being modified: ask again: %w", context.Cause(ctx))
		}
	}
}

// changing waits a moment for a volume that EC2 is changing already: to the wanted state, if the answer to an earlier
// request was lost. EC2 works for hours on another change, in which an attachment and a deletion must not wait for this
// one. Kinds: Busy; NotFound; Unavailable; those of asOfNow.
func (b *backend) changing(ctx context.Context, v types.Volume, want change, refusal error) (types.Volume, error) {
	patience, cancel := context.WithTimeout(ctx, b.config.Timing.Settle/10)
	defer cancel()
	now, err := b.volumes.Until(patience, "modify", aws.ToString(v.VolumeId),
		func(v types.Volume, err error) (bool, error) { return err == nil && want.met(v), err })
	switch {
	case backends.Is(err, backends.Busy):
		return v, backends.Errorf(backends.Busy, "the volume is being changed, maybe by an earlier request: ask again: %w",
			ofEC2(refusal))
	case err != nil, want.Mutable == Mutable{}:
		return now, b.proven(ctx, aws.ToString(v.VolumeId), err)
	}
	return b.asOfNow(ctx, now)
}

// refusedFor finds out why EC2 rejects a change whose rules were checked before: the volume may be as wanted already,
// or differ from what reads showed. Kinds: Busy for the latter; those of the refusal.
func (b *backend) refusedFor(ctx context.Context, v types.Volume, want change,
	refusal error) (types.Volume, error) {
	now, err := b.probe(ctx, aws.ToString(v.VolumeId))
	if backends.Is(err, backends.Unsupported) {
		patience, cancel := context.WithTimeout(ctx, b.config.Timing.Settle)
		defer cancel()
		now, err = b.volumes.Until(patience, "modify", aws.ToString(v.VolumeId),
			func(v types.Volume, err error) (bool, error) { return err == nil && want.met(v), err })
		if err != nil {
			return v, ofEC2(refusal)
		}
	}
	switch {
	case err != nil, want.met(now):
		return now, err
	case shapeOf(now) != shapeOf(v):
		return now, backends.Errorf(backends.Busy, "the volume was changed meanwhile: ask again: %w", ofEC2(refusal))
	}
	return now, ofEC2(refusal)
}
