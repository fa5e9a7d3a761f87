package localvolume

import (
	"context"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// find returns an order that was carried out and still exists. Kinds: NotFound; Unusable; Busy.
func (s *orders[O]) find(ctx context.Context, handle string) (none O, _ error) {
	o, err := s.get(ctx, handle)
	if err != nil {
		return none, err
	}
	return o, s.checkUsable(handle, o)
}

// checkUsable fails if nothing usable exists for an order. The order is nil if none exists. Kinds: NotFound; Unusable;
// Busy.
func (s *orders[O]) checkUsable(handle string, o O) error {
	var none O
	switch {
	case o == none || isOver(o):
		return s.notFound(handle)
	case s.isMade(o):
		return nil
	case hasEnded(o):
		return backends.Errorf(backends.Unusable, "the %s %s could not be made: %w", s.word, handle, s.whyRefused(o))
	}
	return s.notYet(o)
}

// isHandle reports whether a text can be a handle. All handles have the same form.
func (s *orders[O]) isHandle(text string) bool {
	form := s.handleOf("")
	prefix, _, _ := strings.Cut(form, "-")
	rest, ok := strings.CutPrefix(text, prefix+"-")
	return ok && len(text) == len(form) && strings.Trim(rest, "0123456789abcdef") == ""
}
