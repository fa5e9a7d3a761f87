package nfs

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
)

// byIdentity returns the shares of each identity. Each share that was never seen is on its own.
func byIdentity(shares []asked) iter.Seq[[]asked] {
	return func(yield func([]asked) bool) {
		for len(shares) > 0 {
			end := 1
			for end < len(shares) && shares[0].home != (homeID{}) && shares[end].home == shares[0].home {
				end++
			}
			if !yield(shares[:end]) {
				return
			}
			shares = shares[end:]
		}
	}
}

// enumerateTwins is enumerateOn for shares of one identity. A record that is on several of them is listed once.
func (e *engine) enumerateTwins(ctx context.Context, k kind, twins []asked, after position, limit int,
	want func(*record) bool) (found []entry, err error) {
	if len(twins) == 1 {
		return e.enumerateOn(ctx, k, twins[0], after.id, limit, want)
	}
	const alike = 16 // IDs that differ only in the last digit: as many may come before the position, or at it.
	from := after.id[:max(0, len(after.id)-1)]
	if limit > 0 {
		limit += alike
	}
	for _, s := range twins {
		on, err := e.enumerateOn(ctx, k, s, from, limit, want)
		if err != nil {
			return nil, err
		}
		found = append(found, on...)
	}
	slices.SortFunc(found, func(a, b entry) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Handle, b.Handle), a.foreign()-b.foreign())
	})
	found = slices.CompactFunc(found, func(a, b entry) bool { return a.ID == b.ID && a.Handle == b.Handle })
	return slices.DeleteFunc(found, func(e entry) bool {
		return cmp.Or(strings.Compare(e.ID, after.id), strings.Compare(e.Handle, after.handle)) <= 0
	}), nil
}

// foreign returns 0 for an item on the share that its handle names, and else 1.
func (e entry) foreign() int {
	if _, where, _, _ := decodeHandle(e.Kind, e.Handle); where == e.place.key() {
		return 0
	}
	return 1
}
