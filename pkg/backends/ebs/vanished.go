package ebs

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// provenGone fails if EC2 still has a volume or snapshot that no read has shown for Settle: reads may be later than
// they should. Kinds: Unavailable then, and when EC2 has not answered.
func (b *backend) provenGone(ctx context.Context, id string) error {
	if b.hasEnded(id) {
		return nil
	}
	err := b.answer(id, b.there(ctx, id))
	switch {
	case err == nil:
		return backends.Errorf(backends.Unavailable, "%s: %w: ask again", id, errUnseen)
	case errors.Is(err, errYoung): // EC2 denies it, as it may deny a new volume. But reads would show that by now.
		return nil
	case backends.Is(err, backends.Unsupported): // EC2 may not be asked: only reads can tell.
		return nil
	}
	return notGone(err)
}

// proven returns the error of reads that are to show a volume, unless that is NotFound and EC2 still has the volume.
// Kinds: also Unavailable then, and when EC2 has not answered.
func (b *backend) proven(ctx context.Context, id string, err error) error {
	if !isGone(err) {
		return err
	}
	return cmp.Or(b.provenGone(ctx, id), err)
}

// vanished returns the error for a volume that EC2 has accepted and then removed, without a reason. EC2 checks the KMS
// key only after its answer (CreateVolume in the API reference, KmsKeyId). Kinds: Unavailable, since the key may be
// usable when the caller asks again.
func (m *making) vanished(id string) error {
	key := "the account's default KMS key for EBS"
	switch {
	case m.key != "":
		key = fmt.Sprintf("the KMS key %q", secret.Option(m.key))
	case m.snapshot != "" || m.volume != "":
		key = "the KMS key of the volume's source"
	}
	return backends.Errorf(backends.Unavailable,
		"EC2 accepted the volume %s and then removed it, as it does if it cannot use the key: check that %s exists in "+
			"this region, is enabled, and may be used by the controller's role; the volume is made anew", id, key)
}
