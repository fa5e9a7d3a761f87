package metadata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// Instance is what a Source knows about the machine. All fields but the ID may be empty.
type Instance struct {
	ID, Type, Zone, Region string
	// From is the name of the Source.
	From string
}

// Source is a place to ask about the machine.
type Source struct {
	Name string // for people, for example: the metadata service at http://169.254.169.254
	// Timeout bounds Get; 0 means Near.
	Timeout time.Duration
	// Silence is a possible cause of a timeout; it may be empty.
	Silence string
	// Get returns what the source knows, at least the ID. It honours its context. Its error continues the sentence that
	// Name begins. It wraps ErrSilent or the context's error when there was no answer in time.
	Get func(ctx context.Context) (Instance, error)
}

// ErrSilent means that a Source did not answer in time.
var ErrSilent = errors.New("did not answer in time")

// Near is usually long enough for a service in the same machine. A service that is out of reach must not delay a start
// for longer.
const Near = 2 * time.Second

// First asks the sources in turn until one answers. Kinds: Unavailable when none does, with the reason of each.
func First(ctx context.Context, sources ...Source) (Instance, error) {
	var why reasons
	for _, source := range sources {
		instance, err := source.ask(ctx)
		if err == nil {
			instance.From = source.Name
			return instance, nil
		}
		if ended := ctx.Err(); ended != nil {
			return Instance{}, failure.Errorf(failure.Unavailable,
				"which machine this is was not found out, because the request has ended: %w", ended)
		}
		why = append(why, fmt.Errorf("%s %w", source.Name, err))
	}
	return Instance{}, &failure.Error{Kind: failure.Unavailable, Op: "find out which machine this is", Err: why}
}

// ask asks one source within its timeout.
func (s Source) ask(ctx context.Context) (Instance, error) {
	timeout := cmp.Or(s.Timeout, Near)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	instance, err := s.Get(ctx)
	switch {
	case err == nil && instance.ID == "":
		return Instance{}, errors.New("does not say the machine's ID")
	case err == nil:
		return instance, nil
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrSilent):
		return Instance{}, silence{s.Silence, timeout, err}
	}
	return Instance{}, err
}

// silence is the error of a source that did not answer.
type silence struct {
	why     string
	timeout time.Duration
	err     error
}

// Error omits the client's own words about its timeout.
func (s silence) Error() string {
	text := fmt.Sprintf("did not answer within %v", s.timeout)
	if s.why != "" {
		text += ": " + s.why
	}
	return text
}

// Unwrap returns ErrSilent and the source's error.
func (s silence) Unwrap() []error { return []error{ErrSilent, s.err} }

// reasons are the errors of all sources, as one sentence.
type reasons []error

// Error joins them.
func (r reasons) Error() string {
	texts := make([]string, len(r))
	for i, err := range r {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns them.
func (r reasons) Unwrap() []error { return r }
