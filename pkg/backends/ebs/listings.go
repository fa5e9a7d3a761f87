package ebs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/pagetoken"
)

const (
	// keepListing is how long an enumeration may take before it requests EC2's pages again. Its results are as old as its
	// beginning.
	keepListing = time.Minute
	// mostListings is how many enumerations of a kind are kept: each holds all its results.
	mostListings = 2
)

// listings keep the results of an enumeration, so that only the first page makes requests to EC2. A token names the
// last handle and the listing. If the listing is gone, the enumeration continues after the handle in a new one.
type listings[T any] struct {
	mu   sync.Mutex
	made uint64
	kept []listing[T] // the oldest first
}

type listing[T any] struct {
	name, query string
	all         []T             // in the order of their handles
	gone        map[string]bool // deleted since, by this process
}

// page returns a page of an enumeration. The query identifies what is enumerated; find returns all of it. Kinds: Busy
// for a token that is not of such an enumeration, and those of find.
func (l *listings[T]) page(page backends.Page, prefix, query string, handle func(T) string,
	find func() ([]T, error)) ([]T, string, error) {
	place, err := pagetoken.Parse(page.Token, func(place string) bool {
		id, _, _ := strings.Cut(place, "/")
		return isID(prefix, id)
	})
	if err != nil {
		return nil, "", err
	}
	after, name, _ := strings.Cut(place, "/")
	all, known := l.find(name, query, handle)
	if !known {
		if all, err = find(); err != nil {
			return nil, "", err
		}
		slices.SortFunc(all, func(x, y T) int { return cmp.Compare(handle(x), handle(y)) })
	}
	first, exact := slices.BinarySearchFunc(all, after,
		func(x T, after string) int { return cmp.Compare(handle(x), after) })
	if exact {
		first++
	}
	if page.Limit > 0 && len(all)-first > page.Limit && !known {
		name = l.keep(query, all)
	}
	found, next := pagetoken.Cut(all[first:], page.Limit, func(x T) string { return handle(x) + "/" + name })
	return slices.Clone(found), next, nil
}

// find returns a kept listing, without the things that were deleted since.
func (l *listings[T]) find(name, query string, handle func(T) string) ([]T, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, kept := range l.kept {
		if kept.name != name || kept.query != query {
			continue
		}
		if len(kept.gone) == 0 {
			return kept.all, true
		}
		return slices.DeleteFunc(slices.Clone(kept.all), func(x T) bool { return kept.gone[handle(x)] }), true
	}
	return nil, false
}

// keep keeps a listing for a while, and returns its name.
func (l *listings[T]) keep(query string, all []T) (name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made++
	name = strconv.FormatUint(l.made, 10)
	l.kept = append(l.kept, listing[T]{name, query, all, map[string]bool{}})
	if len(l.kept) > mostListings {
		l.kept = slices.Delete(l.kept, 0, 1)
	}
	time.AfterFunc(keepListing, func() { l.drop(name) })
	return name
}

func (l *listings[T]) drop(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = slices.DeleteFunc(l.kept, func(kept listing[T]) bool { return kept.name == name })
}

// without records the outcome of a deletion: a deleted thing is no longer listed.
func (l *listings[T]) without(handle string, err error) {
	if err != nil && !isGone(err) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, kept := range l.kept {
		kept.gone[handle] = true
	}
}
