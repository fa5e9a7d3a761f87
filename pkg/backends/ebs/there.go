package ebs

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/batch"
)

// there asks EC2 whether a volume or snapshot exists, by a request without effect: the removal of a tag that nothing
// has. The policy allows that regardless of the thing's tags, so EC2 answers even for a thing that is gone. Kinds:
// NotFound, which is certain; those of orYoung and of EC2's refusal, which say nothing. A volume that exists may be on
// its way out: see asOfNow.
func (b *backend) there(ctx context.Context, ids ...string) error {
	nobodys := types.Tag{Key: aws.String(b.probeTag()), Value: aws.String(rand.Text())}
	_, err := b.once.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: ids, Tags: []types.Tag{nobodys}})
	if err = ofEC2(err); len(ids) == 1 && saysNone(ids[0], err) {
		return b.orYoung(ids[0], err)
	}
	return err
}

// answer interprets EC2's answer to such a request. Kinds: NotFound; Busy for a thing that is too young for that;
// Unsupported when EC2 cannot be asked that, now or ever; Unavailable when it has not said so yet.
func (b *backend) answer(id string, err error) error {
	switch {
	case errors.Is(err, errYoung):
		return err
	case backends.Is(err, backends.Denied), backends.Is(err, backends.Invalid):
		b.tell(id, err)
		return backends.Errorf(backends.Unsupported, "EC2 cannot be asked how %q is now: %w", id, err)
	case err != nil && !isGone(err): // A request that was not sent, or must be sent again later, says nothing.
		return backends.Errorf(backends.Unavailable, "EC2 has not said whether %q is there: ask again: %w", id, err)
	}
	return err
}

// toldAgain is how long the log waits before it repeats a warning that people must act on.
const toldAgain = time.Hour

// tell logs from time to time that EC2 cannot be asked whether a thing exists. It logs a missing permission once for
// all things.
func (b *backend) tell(id string, err error) {
	what := id
	if backends.Is(err, backends.Denied) {
		what = ""
	}
	if b.told.left(what) > 0 {
		return
	}
	b.told.note(what, 0)
	b.log.Warn("EC2 cannot be asked whether something is still there: what reads show is believed, which may be old; "+
		"allow what deploy/aws/controller-policy.json does, and leave each volume room for a tag", "id", id, "error", err)
}

// keeps fails for a volume or snapshot that is gone: a read that shows it is older. Kinds: NotFound; Busy and
// Unavailable when EC2 has not said whether it exists.
func (b *backend) keeps(ctx context.Context, id string) error {
	err := b.answer(id, b.there(ctx, id))
	if isGone(err) {
		return noThing(id)
	}
	if backends.Is(err, backends.Unsupported) {
		return nil
	}
	return err
}

// stillKept returns the snapshots of a read that still exist, with few requests. Kinds: Unavailable.
func (b *backend) stillKept(ctx context.Context, shown []types.Snapshot) (there []types.Snapshot, err error) {
	ids := make([]string, len(shown))
	for i, s := range shown {
		ids[i] = aws.ToString(s.SnapshotId)
	}
	results := batch.Each(ctx, ids, batch.Options{Max: pageSize, Timeout: b.config.Timing.Call, Named: mentions},
		func(ctx context.Context, ids []string) ([]batch.Result[struct{}], error) {
			return make([]batch.Result[struct{}], len(ids)), b.there(ctx, ids...)
		})
	for i, s := range shown {
		switch err := results[i].Err; {
		case err == nil, errors.Is(err, errYoung), backends.Is(err, backends.Denied), backends.Is(err, backends.Invalid):
			there = append(there, s) // EC2 has no other answer yet, or none at all.
		case !isGone(err):
			return nil, b.answer(ids[i], err)
		}
	}
	return there, nil
}

// refused reports whether EC2 says that the volume or snapshot does not exist.
func (b *backend) refused(ctx context.Context, id string) bool { return isGone(b.there(ctx, id)) }

// orGone returns the error of a request for a volume or snapshot, and NotFound if that does not exist. The policy goes
// by the thing's tags, and a thing that is gone has none: EC2 then says only that the request is forbidden. Kinds: also
// Busy when EC2 has not said which it is, and those of orYoung: the request was refused, so that nothing is on its way.
func (b *backend) orGone(ctx context.Context, id string, err error) error {
	if saysNone(id, err) {
		return b.orYoung(id, err)
	}
	if !backends.Is(err, backends.Denied) {
		return err
	}
	switch there := b.there(ctx, id); {
	case isGone(there):
		return noThing(id)
	case there == nil, backends.Is(there, backends.Denied), backends.Is(there, backends.Invalid): // EC2 may not be asked.
		return err
	default:
		return backends.Errorf(backends.Busy, "EC2 has not said whether %s is there: ask again: %w", id, there)
	}
}

// ended records EC2's answer, to a request that changes something, that a volume or snapshot does not exist.
func (b *backend) ended(id string) {
	if isID("snap", id) {
		b.kept.End(id)
		return
	}
	b.shown.End(id)
}

// hasEnded reports whether EC2 has said so.
func (b *backend) hasEnded(id string) bool {
	if isID("snap", id) {
		return b.kept.Ended(id)
	}
	return b.shown.Ended(id)
}

// noThing returns the error for a volume or snapshot that does not exist.
func noThing(id string) error {
	if isID("snap", id) {
		return noSnapshot(id)
	}
	return noVolume(id)
}
