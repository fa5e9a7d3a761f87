package ebs

import (
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// staying fails for a thing that a deletion may still remove, even if its call has ended: a caller that was given the
// thing would lose it. Kinds: Busy.
func (b *backend) staying(id string) error {
	if what, busy := b.deleting.Under(id); busy {
		return backends.Errorf(backends.Busy, "%s is under way: ask again", what)
	}
	if left := b.dying.left(id); left > 0 {
		return backends.Errorf(backends.Busy,
			"EC2 has not answered a request to delete %s, which may still arrive: in %v it is certain whether it stays: "+
				"ask again", id, left.Round(time.Second))
	}
	return nil
}

// final makes a refused deletion non-final while an earlier request for it may still arrive: a caller that relied on
// the refusal would lose the thing. Kinds: those of the refusal; Unavailable.
func (b *backend) final(id string, refusal error) error {
	left := b.dying.left(id)
	undecided := backends.Is(refusal, backends.Busy) || backends.Is(refusal, backends.Unavailable)
	if refusal == nil || undecided || isGone(refusal) || left <= 0 {
		return refusal
	}
	return backends.Errorf(backends.Unavailable,
		"an earlier request to delete %s got no answer and may still arrive: in %v it is certain whether it stays: ask "+
			"again: %w", id, left.Round(time.Second), refusal)
}

// unanswered records a deletion request that got no answer.
func (b *backend) unanswered(id string, err error) {
	if mayArrive(err) {
		b.dying.note(id, 0)
	}
}
