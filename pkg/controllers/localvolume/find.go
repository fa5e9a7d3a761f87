package localvolume

import (
	"context"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/pagetoken"
)

// find returns an order that was carried out and is not gone. Kinds: NotFound; Unusable; Busy.
func (s *orders[O]) find(ctx context.Context, handle string) (none O, _ error) {
	o, err := s.get(ctx, handle)
	if err != nil {
		return none, err
	}
	return o, s.checkUsable(handle, o)
}

// checkUsable refuses an order, nil for none, of which there is nothing to be used. Kinds: NotFound; Unusable; Busy.
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

// isHandle reports whether a text can be a handle. All handles have one form.
func (s *orders[O]) isHandle(text string) bool {
	form := s.handleOf("")
	prefix, _, _ := strings.Cut(form, "-")
	rest, ok := strings.CutPrefix(text, prefix+"-")
	return ok && len(text) == len(form) && strings.Trim(rest, "0123456789abcdef") == ""
}

// page returns those of the orders that are not over and that keep says yes to, in the order of their handles.
func (s *orders[O]) page(ctx context.Context, page backends.Page, keep func(O) bool) (
	found []O, next string, err error) {
	after, err := pagetoken.Parse(page.Token, s.isHandle)
	if err != nil {
		return nil, "", err
	}
	if found, err = s.all(ctx); err != nil {
		return nil, "", err
	}
	found = slices.DeleteFunc(found, func(o O) bool { return o.GetName() <= after || isOver(o) || !keep(o) })
	slices.SortFunc(found, func(a, b O) int { return strings.Compare(a.GetName(), b.GetName()) })
	found, next = pagetoken.Cut(found, page.Limit, O.GetName)
	return found, next, nil
}
