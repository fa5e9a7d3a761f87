package ebs

import (
	"context"
	"crypto/rand"
	"math"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	smithy "github.com/aws/smithy-go/middleware"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// reply is what EC2 says that it has made. With a token that was used before, that is the volume that was made then.
type reply struct {
	types.Volume
	age time.Duration // when EC2 answered, by its own clock, and up to a second less; the longest there is if not said
}

func replyOf(v types.Volume, said smithy.Metadata) reply {
	now, ok := middleware.GetServerTime(said)
	if !ok || v.CreateTime == nil {
		return reply{v, math.MaxInt64}
	}
	return reply{v, now.Sub(*v.CreateTime)}
}

// asOfNow returns a volume as it is after the call has begun. A read shows late what another process has done, and EC2
// refuses no request on a volume that is being deleted, as it does once that is gone. So the volume is given a tag that
// is new, and a read that shows the tag is new enough. One that cannot be tagged, because that is forbidden or because
// it has too many tags, is returned as it was seen. A name has one caller at a time, so that nobody replaces the tag.
// Kinds: NotFound when it is gone or on its way out; Unavailable when EC2 does not answer; Busy when it does not show
// the tag in the request's time.
func (b *backend) asOfNow(ctx context.Context, v types.Volume) (types.Volume, error) {
	id := aws.ToString(v.VolumeId)
	mark := types.Tag{Key: aws.String(b.probeTag()), Value: aws.String(rand.Text())}
	_, err := b.once.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{mark}})
	switch err = ofEC2(err); {
	case isGone(err):
		b.ended(id)
		return v, err
	case backends.Is(err, backends.Unavailable), ctx.Err() != nil:
		return v, backends.Errorf(backends.Unavailable, "EC2 has not said whether volume %q is there: ask again: %w", id, err)
	case err != nil:
		b.log.Warn("EC2 cannot be asked whether a volume is still there", "volume", id, "error", err)
		return v, nil
	}
	v, err = b.volumes.Until(ctx, "show a tag", id, func(v types.Volume, err error) (bool, error) {
		value, _ := tag(v.Tags, *mark.Key)
		return err == nil && value == *mark.Value, err
	})
	if err != nil {
		return v, err
	}
	_, err = b.once.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: []types.Tag{mark}})
	if err != nil {
		b.log.Debug("a tag that says nothing is left", "volume", id, "error", err)
	}
	return v, nil
}
