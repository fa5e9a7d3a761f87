package backendtest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// listChecks check the promises of an enumeration of things.
func listChecks(kind func(w *world) things) []check {
	with := func(run func(w *world, ts things)) func(w *world) {
		return func(w *world) { run(w, kind(w)) }
	}
	return []check{
		{"entries are as they are found", with(listEntries)},
		{"pages of any size add up to everything, once and in one order", with(listPages)},
		{"a page goes on when the entry before it is gone", with(listGoesOn)},
		{"what is there all the time is returned once", with(listWhileChanging)},
		{"a foreign token is Busy", with(listForeignTokens)},
		{"a request that has ended is answered at once", with(func(w *world, ts things) {
			ended, cancel := context.WithCancel(w.ctx())
			cancel()
			w.promptly("listing", func() {
				if _, _, err := ts.list(ended, backends.Page{}); err != nil {
					w.fails("listing with a request that has ended", err, backends.Busy, backends.Unavailable)
				}
			})
		})},
	}
}

// several creates things and returns the handles of all listed things.
func (w *world) several(ts things, n int) []string {
	w.Helper()
	for i := range n {
		w.make(ts, fmt.Sprint("thing ", i))
	}
	handles, _ := w.listed(ts)
	return handles
}

// page returns the handles of one page.
func (w *world) page(ts things, limit int, token string) (handles []string, next string) {
	w.Helper()
	page, next, err := ts.list(w.ctx(), backends.Page{Limit: limit, Token: token})
	w.must(fmt.Sprintf("listing %d after the token %q", limit, token), err)
	if limit > 0 && len(page) > limit {
		w.Errorf("a page has %d entries, want at most %d", len(page), limit)
	}
	if next != "" && len(page) == 0 {
		w.Errorf("an empty page says that there are more")
	}
	for _, t := range page {
		handles = append(handles, t.handle)
	}
	return handles, next
}

// rest returns the handles of all pages from the token on.
func (w *world) rest(ts things, limit int, token string) (handles []string) {
	w.Helper()
	for range 1000 {
		page, next := w.page(ts, limit, token)
		if handles = append(handles, page...); next == "" {
			return handles
		}
		token = next
	}
	w.Fatalf("an enumeration with %d entries a page does not end", limit)
	return nil
}

func listEntries(w *world, ts things) {
	w.several(ts, 3)
	all, next, err := ts.list(w.ctx(), backends.Page{})
	if err != nil || next != "" {
		w.Fatalf("listing everything: got the token %q and %v, want neither", next, err)
	}
	for _, t := range all {
		if got, err := ts.get(w.ctx(), t.handle); err != nil || !reflect.DeepEqual(got, t) {
			w.Errorf("listed:\n%+v\nfound, with the error %v:\n%+v", t.value, err, got.value)
		}
	}
	for i := range 3 {
		t, err := ts.find(w.ctx(), fmt.Sprint("thing ", i))
		w.must("finding", err)
		w.must("deleting", ts.delete(w.ctx(), t.handle))
	}
	if left, _ := w.listed(ts); len(left) != len(all)-3 {
		w.Errorf("%d entries are listed after deleting 3 of %d", len(left), len(all))
	}
}

func listPages(w *world, ts things) {
	all := w.several(ts, 5)
	for limit := 0; limit <= len(all)+1; limit++ {
		if pages := w.rest(ts, limit, ""); !slices.Equal(pages, all) {
			w.Errorf("pages of %d add up to\n%q\nwant\n%q", limit, pages, all)
		}
	}
	if first, next := w.page(ts, len(all), ""); next != "" {
		w.Errorf("after a page with all %d entries the token is %q, want none", len(first), next)
	}
}

func listGoesOn(w *world, ts things) {
	for _, gone := range []string{"before", "after"} {
		all := w.several(ts, 6)
		// The things of several are at the end or at the beginning if the order is by age, so split in the middle.
		first, next := w.page(ts, len(all)-3, "")
		victim := first[len(first)-1]
		if gone == "after" {
			victim = all[len(first)]
		}
		w.must("deleting", ts.delete(w.ctx(), victim))
		want := slices.DeleteFunc(slices.Clone(all[len(first):]), func(h string) bool { return h == victim })
		if rest := w.rest(ts, 1, next); !slices.Equal(rest, want) {
			w.Errorf("with the entry %s the token deleted, the rest is\n%q\nwant\n%q", gone, rest, want)
		}
		w.clear(ts, "thing ", 6)
	}
}

// clear deletes the things of several that still exist.
func (w *world) clear(ts things, prefix string, n int) {
	w.Helper()
	for i := range n {
		if t, err := ts.find(w.ctx(), fmt.Sprint(prefix, i)); err == nil {
			w.must("deleting", ts.delete(w.ctx(), t.handle))
		}
	}
}

// listWhileChanging creates and deletes things between pages.
func listWhileChanging(w *world, ts things) {
	passing := []thing{w.make(ts, "passing 0")}
	stay := w.several(ts, 4)
	stay = slices.DeleteFunc(stay, func(handle string) bool { return handle == passing[0].handle })
	passing = append(passing, w.make(ts, "passing 1"))
	var seen []string
	token := ""
	for i := range 1000 {
		page, next := w.page(ts, 1, token)
		seen = append(seen, page...)
		if i < len(passing) {
			w.must("deleting", ts.delete(w.ctx(), passing[i].handle))
		}
		if i < 3 {
			w.make(ts, fmt.Sprint("new ", i))
		}
		if token = next; token == "" {
			break
		}
	}
	for _, handle := range stay {
		count := 0
		for _, other := range seen {
			if other == handle {
				count++
			}
		}
		if count != 1 {
			w.Errorf("an entry that was there all the time was returned %d times, want once", count)
		}
	}
}

func listForeignTokens(w *world, ts things) {
	all := w.several(ts, 3)
	_, next := w.page(ts, 1, "")
	tokens := []string{
		"nonsense", "0", "1", "2", "-1", "999999", "\x00", " ", "..", "../../etc/passwd", strings.Repeat("t", 10_000),
		next + "0000000", next + " ", " " + next, "+" + next, next[:len(next)-1],
	}
	for _, token := range tokens {
		if _, _, err := ts.list(w.ctx(), backends.Page{Limit: 1, Token: token}); token != next {
			w.fails(fmt.Sprintf("listing after the token %.40q", token), err, backends.Busy)
		}
	}
	if rest := w.rest(ts, 0, next); !slices.Equal(rest, all[1:]) {
		w.Errorf("after the right token there are\n%q\nwant\n%q", rest, all[1:])
	}
}
