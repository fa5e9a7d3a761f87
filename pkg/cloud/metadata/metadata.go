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

// Instance is what is known of the machine. Whoever knows the ID may not know the rest, which is then empty.
type Instance struct {
	ID, Type, Zone, Region string
	// From is the Source's name.
	From string
}

// Source is somebody who may know the machine.
type Source struct {
	Name string // for people, such as: the metadata service at http://169.254.169.254
	// Timeout bounds the asking; 0 for Near.
	Timeout time.Duration
	// Silence is why it may be that there is no answer in time; it may be empty.
	Silence string
	// Get returns what is known, the ID at least. It honours its context. Its error goes on with the sentence that Name
	// begins, and wraps ErrSilent, or the context's error, when there was no answer in time.
	Get func(ctx context.Context) (Instance, error)
}

// ErrSilent is that a Source did not answer in time.
var ErrSilent = errors.New("did not answer in time")

// Near is usually long enough for something in the same machine. A start is not to be held up for longer by what is out
// of reach.
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

// ask asks one source within its time.
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

// silence is that a source did not answer.
type silence struct {
	why     string
	timeout time.Duration
	err     error
}

// Error has nothing of what a client says about its own timeout.
func (s silence) Error() string {
	text := fmt.Sprintf("did not answer within %v", s.timeout)
	if s.why != "" {
		text += ": " + s.why
	}
	return text
}

// Unwrap returns what the source said.
func (s silence) Unwrap() []error { return []error{ErrSilent, s.err} }

// reasons are why no source answered, as one sentence.
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
