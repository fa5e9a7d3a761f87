package ebs

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	smithy "github.com/aws/smithy-go/middleware"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// reply is a volume that EC2 reports as created. For a token that was used before, it is the volume created then.
type reply struct {
	types.Volume
	// born is when it was created, by the process's clock, or later by the time for which the answer was under way and
	// up to a second; zero if EC2 did not say.
	born time.Time
}

func (b *backend) replyOf(v types.Volume, said smithy.Metadata) reply {
	b.bear(aws.ToString(v.VolumeId), v.CreateTime, said)
	age, ok := ageOf(v.CreateTime, said)
	if !ok {
		return reply{Volume: v}
	}
	return reply{v, time.Now().Add(-age)}
}

// ageOf returns how old a thing was when EC2 answered, by EC2's own clock, and up to a second less. It returns false if
// EC2 did not say.
func ageOf(began *time.Time, said smithy.Metadata) (age time.Duration, ok bool) {
	now, ok := middleware.GetServerTime(said)
	if !ok || began == nil {
		return 0, false
	}
	return now.Sub(*began), true
}

// asOfNow returns a volume's state at an instant after the call began. If that cannot be found out, it returns the
// state that was seen before. Kinds: those of probe, without Unsupported.
func (b *backend) asOfNow(ctx context.Context, v types.Volume) (types.Volume, error) {
	now, err := b.probe(ctx, aws.ToString(v.VolumeId))
	if backends.Is(err, backends.Unsupported) {
		return v, nil
	}
	return now, err
}

// probe returns a volume's state at an instant after the call began. A read shows changes of other processes late. EC2
// refuses requests for a volume that is gone, but not for one that is being deleted. So probe puts a new tag on the
// volume, and a read that shows the tag is recent enough. Kinds: NotFound when it is gone or on its way out;
// Unsupported when it cannot be tagged, because that is forbidden or because it has too many tags; Unavailable when EC2
// does not answer, or is not asked; Busy when it does not show the tag in the request's time.
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

// errReplaced means that another caller, maybe in another process, may have replaced the mark by its own and removed
// that.
var errReplaced = errors.New("the mark is not shown")

// marked waits until a volume shows one of the marks.
func (b *backend) marked(ctx context.Context, id string, marks []string) (types.Volume, error) {
	put := time.Now()
	v, err := b.volumes.Until(ctx, "show a tag", id, func(v types.Volume, err error) (bool, error) {
		value, _ := tag(v.Tags, b.probeTag())
		if err != nil || slices.Contains(marks, value) {
			return err == nil, err
		}
		if time.Since(put) > b.config.Timing.Settle/10 { // Until then the read may be older.
			return false, errReplaced
		}
		return false, nil
	})
	return v, b.proven(ctx, id, err)
}
