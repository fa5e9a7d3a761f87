package local

import (
	"fmt"
	"testing"
)

// TestPagesLookAtWhatTheyShow checks that the cost of a page depends on its length, not on the entries before it.
func TestPagesLookAtWhatTheyShow(t *testing.T) {
	const items, limit = 1000, 10
	all := newShelf[int]("thing")
	for i := range items {
		all.settle(fmt.Sprintf("%04d", i), i)
	}
	looks, shown, pages := 0, 0, 0
	for last, more := "", true; more; pages++ {
		page := all.after(last, limit, func(entry[int]) bool { looks++; return true })
		if len(page) > limit {
			t.Fatalf("a page of %d has %d items", limit, len(page))
		}
		if more = len(page) > 0; more {
			shown, last = shown+len(page), page[len(page)-1].handle
		}
	}
	if shown != items || looks > items+pages {
		t.Errorf("%d pages show %d of %d items after %d looks", pages, shown, items, looks)
	}
}
