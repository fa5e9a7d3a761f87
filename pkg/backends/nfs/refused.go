package nfs

import (
	"errors"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// ended is a failure after which all attempts at the name were ended, and no item of the name existed. It is less than
// Prover's proof: other controllers may still begin earlier calls.
type ended struct{ error }

// Unwrap returns the failure.
func (e ended) Unwrap() error { return e.error }

// refused ends all attempts at what is refused for good, and looks for it once more: the caller does not ask again,
// and another controller may be at it yet, or have published it since the first look. Kinds: why's; Exists when it is
// there; Unusable when what has the name cannot be read; Unavailable whatever else keeps that from being told.
func (m *making) refused(k kind, id string, why error) error {
	if why == nil || again(why) || backends.Is(why, backends.Exists) {
		return why
	}
	err := m.fence(m.share, m.home, id, "")
	if err == nil {
		err = m.free(k, id)
	}
	switch {
	case err == nil:
		return ended{why}
	case backends.Is(err, backends.Exists):
		return err
	}
	kind := backends.Unavailable
	if classify(err) == backends.Unusable { // An unreadable item is no more final than that.
		kind = backends.Unusable
	}
	return backends.Errorf(kind, "%w; and it cannot be told that nothing of this name is made: %w", why, advised(err))
}

// undecided reports a final failure as undecided, unless it is proven that nothing was created. Others may publish the
// item yet, or have done so where this controller cannot look. Even the parts of a published item may not find room in
// their places. Kinds: Unavailable then.
func undecided(err error) error {
	_, nothing := errors.AsType[ended](err)
	open := again(err) || backends.Is(err, backends.Exists) || backends.Is(err, backends.Unusable)
	if err == nil || nothing || open {
		return err
	}
	return backends.Errorf(backends.Unavailable, "%w; something of this name may be there all the same: ask again",
		advised(err))
}
