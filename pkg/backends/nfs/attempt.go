package nfs

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// making is the creation of one item.
type making struct {
	*engine
	share   *share.Share
	home    *share.Home
	place   place
	origins []origin // one for each directory that is copied; none for an empty volume
	// required is how many bytes must be free before the attempt.
	required int64
	turn     uint64 // of its permit
}

// make creates the item with the ID as planned, unless it exists. Its caller reports failures as undecided. Kinds:
// Exists; Busy; the plan's; any when the attempts of others cannot be ended.
func (m *making) make(ctx context.Context, k kind, id string, plan func() (*record, error)) (*record, error) {
	unlock, err := m.lock(m.share, k, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if m.turn, err = m.lead(ctx, m.home, k.calls(), "making "+id); err != nil {
		return nil, err
	}
	r, err := m.attempt(ctx, k, id, plan)
	return r, m.refused(k, id, m.orMissing(m.home, err))
}

// attempt begins to create the item, or resumes an earlier attempt.
func (m *making) attempt(ctx context.Context, k kind, id string, plan func() (*record, error)) (*record, error) {
	job := m.share.Address.String() + " " + string(k) + " " + id
	var want *record
	err := m.free(k, id)
	if err == nil {
		want, err = plan()
	}
	switch {
	case err != nil && again(err):
		return nil, err
	case err != nil: // It exists, or cannot exist: a copy for the next call is of no use.
		m.copies.drop(job)
		return nil, err
	case len(m.origins) == 0:
		return want, m.makeEmpty(ctx, want)
	}
	return m.makeCopy(ctx, job, want)
}

// again reports whether the next call may have another outcome without any change by a user.
func again(err error) bool {
	switch classify(err) {
	case backends.Busy, backends.Unavailable, backends.Unknown:
		return true
	default:
		return false
	}
}

func (m *making) makeEmpty(ctx context.Context, r *record) error {
	err := m.draft(ctx, r)
	if err == nil {
		err = m.publish(ctx, r)
	}
	return m.orGivenUp(r, err)
}

// makeCopy publishes a copy that is made in the background, for this call or for an earlier one.
func (m *making) makeCopy(ctx context.Context, job string, want *record) (*record, error) {
	r, err := m.copies.run(ctx, job, want, m)
	if err != nil {
		return nil, err
	}
	if err = m.unlessFenced(r, m.publish(ctx, r)); err != nil && again(err) && !errors.Is(err, errFenced) {
		return nil, err // The next call retries with the same copy.
	}
	if err != nil {
		m.copies.drop(job)
		return nil, err
	}
	m.copies.done(job)
	return r, nil
}

// sameAs reports whether two attempts create the same item.
func (r *record) sameAs(want *record) bool {
	a, b := *r, *want
	for _, one := range []*record{&a, &b} {
		one.Turn, one.CreatedAt = "", time.Time{}
		var volumes []member
		for _, of := range one.Members {
			volumes = append(volumes, member{Volume: of.Volume})
		}
		one.Members = volumes
	}
	return reflect.DeepEqual(a, b)
}
