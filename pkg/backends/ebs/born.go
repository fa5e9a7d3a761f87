package ebs

import (
	"errors"
	"time"

	smithy "github.com/aws/smithy-go/middleware"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// bear takes down when a thing was made, if that was a moment ago.
func (b *backend) bear(id string, began *time.Time, said smithy.Metadata) {
	if age, ok := ageOf(began, said); ok && age < b.born.while && b.born.left(id) <= 0 {
		b.born.note(id, age)
	}
}

// errYoung says that EC2 may not know something everywhere yet.
var errYoung = errors.New("it was made a moment ago, and EC2 may not know it everywhere yet")

// orYoung is what it means that EC2 says of a volume or snapshot, in answer to a request that changes something, that
// there is none. That is certain, and is taken down, unless the thing was made a moment ago: its ID may not have
// reached all of EC2 then ("Eventual consistency in the Amazon EC2 API"), if EC2 has not said before that it is gone.
// Kinds: NotFound; Busy for the latter, since the request was refused.
func (b *backend) orYoung(id string, err error) error {
	if b.born.left(id) > 0 && !b.hasEnded(id) {
		return backends.Errorf(backends.Busy, "%s: %w: ask again: %w", id, errYoung, err)
	}
	b.ended(id)
	return err
}

// saysNone reports whether EC2 says that there is no such volume or snapshot, and not that something else is missing.
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
