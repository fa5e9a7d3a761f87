package ebs

import (
	"cmp"
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// Create creates an empty volume. Kinds: those of backends.Backend.
func (b *backend) Create(ctx context.Context, spec backends.Spec) (_ *backends.Volume, err error) {
	defer annotate(&err, "create", spec.Name)
	return b.create(ctx, spec, func(context.Context) (origin, error) { return origin{}, nil })
}

// Clone creates a volume with the data of another, in the same zone. Both can be used while EC2 is still copying.
func (b *backend) Clone(ctx context.Context, spec backends.Spec, source string) (_ *backends.Volume, err error) {
	defer annotate(&err, "clone", spec.Name)
	return b.create(ctx, spec, func(ctx context.Context) (origin, error) {
		v, err := b.ownVolume(ctx, source)
		if err != nil {
			return origin{}, err
		}
		return origin{volume: source, raw: b.raw(v.Tags), bytes: int64(aws.ToInt32(v.Size)) * gib,
			zone: aws.ToString(v.AvailabilityZone)}, nil
	})
}

// create creates a volume unless a volume of that name exists, or is being created.
func (b *backend) create(ctx context.Context, spec backends.Spec,
	source func(context.Context) (origin, error)) (*backends.Volume, error) {
	op := flight.Op{Key: spec.Name, What: "making volume " + spec.Name}
	v, err := b.making.Do(ctx, op, func(ctx context.Context) (*backends.Volume, error) {
		return settled(ctx, &b.unmade, spec.Name,
			func() (*backends.Volume, error) { return b.newVolume(ctx, spec, source) })
	})
	return v, b.undecided(spec.Name, err)
}

// newVolume creates a volume unless a look shows one of that name.
func (b *backend) newVolume(ctx context.Context, spec backends.Spec,
	source func(context.Context) (origin, error)) (*backends.Volume, error) {
	leave, err := b.pace.Enter("CreateVolume", 2*b.config.Timing.Call/3)
	if err != nil {
		return nil, err
	}
	defer leave()
	began := time.Now()
	found, shown, err := b.findNamed(ctx, spec.Name)
	switch {
	case err != nil:
		return nil, err
	case shown:
		b.unmade.forget(spec.Name)
	default:
		b.unmade.note(spec.Name, began)
	}
	if found != nil {
		return nil, b.exists(ctx, spec.Name, *found)
	}
	from, err := source(ctx)
	if err != nil {
		return nil, err
	}
	d, err := b.design(ctx, spec, from)
	if err != nil {
		return nil, err
	}
	m := making{b: b, name: spec.Name, design: d, asked: leave, began: time.Now()}
	return m.run(ctx)
}

// undecided makes an error non-final while a request of an earlier call may still create the volume.
func (b *backend) undecided(name string, err error) error {
	kind := failure.KindOf(err)
	if err == nil || kind == backends.Exists || kind == backends.Busy || kind == backends.Unavailable ||
		!b.tokens.Lost(b.tokens.Of(name), b.config.Timing.Settle) {
		return err
	}
	return backends.Errorf(backends.Unavailable,
		"EC2 has not answered an earlier request for the volume, which may still arrive: ask again: %w", err)
}

// exists returns the error for a name that is taken, once the volume that has it can be used.
func (b *backend) exists(ctx context.Context, name string, v types.Volume) error {
	if _, err := b.made(ctx, name, v); err != nil {
		return err
	}
	b.tokens.Promise(b.tokens.Of(name), "")
	return backends.Errorf(backends.Exists, "there is a volume %q already", name)
}

// made waits until a volume is no longer being created, because a caller that gets it may attach it next. Kinds: Busy
// when that does not end within the request's time; Unavailable when the creation fails.
func (b *backend) made(ctx context.Context, name string, v types.Volume) (types.Volume, error) {
	if v.State != types.VolumeStateCreating {
		return v, nil
	}
	v, err := b.volumes.Until(ctx, "create", aws.ToString(v.VolumeId), func(v types.Volume, err error) (bool, error) {
		return err == nil && v.State != types.VolumeStateCreating, err
	})
	if err != nil {
		return v, backends.Errorf(backends.Busy, "the volume %q is being made: ask again: %w", name, err)
	}
	return v, b.usable(ctx, v)
}

// making is a volume that is being created.
type making struct {
	b    *backend
	name string
	design
	asked  func()    // must be called once a request was sent
	unsure bool      // whether a request of this call got no answer
	began  time.Time // before the first request
}

// run requests the volume with one token after another, until one has created it. It moves on to the next token only if
// the thing created with the present one is certainly gone. If EC2 has promised that thing to this process, and it was
// never seen complete, run ends with the probable reason: the next one would be gone as well, and so on.
func (m *making) run(ctx context.Context) (*backends.Volume, error) {
	for {
		token := m.b.tokens.Of(m.name)
		v, err := flight.Finish(ctx, m.b.config.Timing.Call,
			func(ctx context.Context) (reply, error) { return m.b.ask(ctx, m.design, token) })
		m.asked()
		m.answered(token, v, err)
		if codeOf(err) == "IdempotentParameterMismatch" {
			err = m.other(ctx, token)
		} else if err == nil {
			var made *backends.Volume
			if made, err = m.settle(ctx, v, token); err == nil && made != nil {
				return made, nil
			}
		} else if backends.Is(err, backends.Unavailable) && !turnedAway(err) && !m.unsure {
			// One more try: with the same token it does no harm, and it saves the orchestrator's pause.
			m.unsure = true
			if ctx.Err() == nil {
				continue
			}
		}
		if err != nil {
			return nil, m.verdict(err)
		}
		id, promised := m.b.tokens.Promised(token)
		m.b.tokens.Turn(m.name, token)
		if promised {
			return nil, m.vanished(id)
		}
	}
}

// answered records that a request may have created a volume: this one, or the one that has used the token before.
func (m *making) answered(token string, made reply, err error) {
	// born may be up to a second late. So a volume that seems to be born with the process may be an earlier process's.
	if err == nil && !made.born.Before(m.began) && made.born.Sub(m.b.began) > time.Second {
		m.b.tokens.Promise(token, aws.ToString(made.VolumeId))
	}
	lost := mayArrive(err)
	if lost {
		m.b.tokens.Lose(token)
	}
	if lost || err == nil || codeOf(err) == "IdempotentParameterMismatch" {
		m.b.unmade.forget(m.name)
	}
}

// verdict makes an error non-final if an earlier request may have created the volume.
func (m *making) verdict(err error) error {
	if m.unsure && !backends.Is(err, backends.Exists) {
		return backends.Errorf(backends.Unavailable, "whether the volume is being made is not known: ask again: %w", err)
	}
	return err
}

// settle waits until the volume can be used. It returns nil for a volume that is gone: its token is of no more use.
func (m *making) settle(ctx context.Context, made reply, token string) (*backends.Volume, error) {
	id := aws.ToString(made.VolumeId)
	gone := false
	usable := func(v types.Volume, err error) (bool, error) {
		if gone = isGone(err); gone {
			return true, nil
		}
		return err == nil && v.State != types.VolumeStateCreating, err
	}
	v, err := m.shownSoon(ctx, id, usable)
	if err != nil && ctx.Err() == nil && m.b.shown.Missed(id) && m.b.refused(ctx, id) {
		return nil, nil // EC2 answered with a volume that the token created earlier.
	}
	if err != nil {
		v, err = m.b.volumes.Until(ctx, "create", id, usable)
	}
	switch {
	case err != nil:
		m.unsure = true
		return nil, err
	case gone:
		err := m.b.provenGone(ctx, id)
		m.unsure = m.unsure || err != nil
		return nil, err
	}
	m.b.tokens.Promise(token, "")
	if hasFailed(v) {
		err := m.b.givenUp(ctx, v)
		if m.b.shown.Ended(id) { // Otherwise the token leads to it again, and no other path does.
			m.b.tokens.Turn(m.name, token)
		}
		return nil, err
	}
	if v, err = m.still(ctx, v, made.born); err != nil {
		m.unsure = m.unsure || !isGone(err)
		return nil, notGone(err)
	}
	return m.b.view(v), nil
}

// still returns the current volume if the token was used before the call: the volume may have failed or been deleted
// since, or a deletion may be about to take effect.
func (m *making) still(ctx context.Context, v types.Volume, born time.Time) (types.Volume, error) {
	if !born.Before(m.began) {
		return v, nil
	}
	v, err := m.b.asOfNow(ctx, v)
	if err == nil {
		err = cmp.Or(m.b.usable(ctx, v), m.b.staying(aws.ToString(v.VolumeId)))
	}
	return v, err
}

// shownSoon waits as long as EC2 usually takes to show a new volume.
func (m *making) shownSoon(ctx context.Context, id string,
	usable func(types.Volume, error) (bool, error)) (types.Volume, error) {
	ctx, cancel := context.WithTimeout(ctx, m.b.config.Timing.Settle/10)
	defer cancel()
	return m.b.volumes.Until(ctx, "create", id, usable)
}

// other finds out what has the token: a volume that EC2 does not show yet, or one that is gone. For the latter it
// returns nil.
func (m *making) other(ctx context.Context, token string) error {
	if id, promised := m.b.tokens.Promised(token); promised && m.b.refused(ctx, id) {
		return nil
	}
	patience, cancel := context.WithDeadline(ctx, m.b.tokens.Doubt(token).Add(m.b.config.Timing.Settle))
	defer cancel()
	found, err := m.b.named.Until(patience, "appear", m.name,
		func(found []types.Volume, err error) (bool, error) { return len(found) > 0, err })
	switch {
	case err == nil:
		if v := m.b.oldest(m.name, found); v != nil {
			return m.b.exists(patience, m.name, *v)
		}
		return m.b.givenUp(patience, found[0])
	case patience.Err() == context.DeadlineExceeded:
		return m.none(ctx)
	}
	return err
}

// none fails unless EC2 answers that it shows no volume of the name. All looks before may have failed.
func (m *making) none(ctx context.Context) error {
	found, _, err := m.b.findNamed(ctx, m.name)
	if err != nil || found == nil {
		return err
	}
	return m.b.exists(ctx, m.name, *found)
}
