package ebs

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"slices"
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

func (b *backend) replyOf(v types.Volume, said smithy.Metadata) reply {
	b.bear(aws.ToString(v.VolumeId), v.CreateTime, said)
	age, ok := ageOf(v.CreateTime, said)
	if !ok {
		age = math.MaxInt64
	}
	return reply{v, age}
}

// ageOf is how old something is that began then, when EC2 answered, by its own clock, and up to a second less; false if
// EC2 has not said.
func ageOf(began *time.Time, said smithy.Metadata) (age time.Duration, ok bool) {
	now, ok := middleware.GetServerTime(said)
	if !ok || began == nil {
		return 0, false
	}
	return now.Sub(*began), true
}

// asOfNow returns a volume as it is after the call has begun, or as it was seen where that cannot be found out. Kinds:
// those of probe, without Unsupported.
func (b *backend) asOfNow(ctx context.Context, v types.Volume) (types.Volume, error) {
	now, err := b.probe(ctx, aws.ToString(v.VolumeId))
	if backends.Is(err, backends.Unsupported) {
		return v, nil
	}
	return now, err
}

// probe returns a volume as it is after the call has begun. A read shows late what another process has done, and EC2
// refuses no request on a volume that is being deleted, as it does once that is gone. So the volume is given a tag that
// is new, and a read that shows the tag is new enough. Kinds: NotFound when it is gone or on its way out; Unsupported
// when it cannot be tagged, because that is forbidden or because it has too many tags; Unavailable when EC2 does not
// answer, or is not asked; Busy when it does not show the tag in the request's time.
func (b *backend) probe(ctx context.Context, id string) (types.Volume, error) {
	var marks []string
	for {
		mark := types.Tag{Key: aws.String(b.probeTag()), Value: aws.String(rand.Text())}
		if err := b.mark(ctx, id, mark); err != nil {
			return types.Volume{}, err
		}
		marks = append(marks, *mark.Value)
		v, err := b.marked(ctx, id, marks)
		if errors.Is(err, errReplaced) {
			continue
		}
		if err != nil {
			return types.Volume{}, err
		}
		_, err = b.once.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: []string{id}, Tags: []types.Tag{mark}})
		if err != nil {
			b.log.Debug("a tag that says nothing is left", "volume", id, "error", err)
		}
		return v, nil
	}
}

// mark puts a tag on a volume.
func (b *backend) mark(ctx context.Context, id string, mark types.Tag) error {
	_, err := b.once.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{mark}})
	return b.answer(id, b.orGone(ctx, id, ofEC2(err)))
}

// errReplaced says that another caller, maybe of another process, may have put its own mark in the place of one's own,
// and taken it away again.
var errReplaced = errors.New("the mark is not shown")

// marked waits until a volume shows one of the marks.
func (b *backend) marked(ctx context.Context, id string, marks []string) (types.Volume, error) {
	put := time.Now()
	return b.volumes.Until(ctx, "show a tag", id, func(v types.Volume, err error) (bool, error) {
		value, _ := tag(v.Tags, b.probeTag())
		if err != nil || slices.Contains(marks, value) {
			return err == nil, err
		}
		if time.Since(put) > b.config.Timing.Settle/10 { // Until then the read may be older.
			return false, errReplaced
		}
		return false, nil
	})
}
