package ebs

import (
	"errors"
	"time"

	smithy "github.com/aws/smithy-go/middleware"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// bear records when a thing was created, if that was a moment ago.
func (b *backend) bear(id string, began *time.Time, said smithy.Metadata) {
	if age, ok := ageOf(began, said); ok && age < b.born.while && b.born.left(id) <= 0 {
		b.born.note(id, age)
	}
}

// errYoung means that EC2 may not know a new thing everywhere yet.
var errYoung = errors.New("it was made a moment ago, and EC2 may not know it everywhere yet")

// orYoung interprets EC2's answer, to a request that changes something, that a volume or snapshot does not exist. The
// answer is certain, and orYoung records it. The exception is a thing created a moment ago: its ID may not have reached
// all of EC2 yet ("Eventual consistency in the Amazon EC2 API"), unless EC2 has said earlier that it is gone. Kinds:
// NotFound; Busy for the exception, since the request was refused.
func (b *backend) orYoung(id string, err error) error {
	if b.born.left(id) > 0 && !b.hasEnded(id) {
		return backends.Errorf(backends.Busy, "%s: %w: ask again: %w", id, errYoung, err)
	}
	b.ended(id)
	return err
}

// saysNone reports whether EC2 says that the volume or snapshot does not exist, and not that something else is missing.
func saysNone(id string, err error) bool {
	switch codeOf(err) {
	case "InvalidVolume.NotFound":
		return isID("vol", id)
	case "InvalidSnapshot.NotFound":
		return isID("snap", id)
	case "InvalidID": // of a request for tags, which takes IDs of any kind
		return true
	}
	return false
}
