package memory

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// TestPagesLookAtWhatTheyShow checks that the cost of a page depends on its length, not on the rows before it.
func TestPagesLookAtWhatTheyShow(t *testing.T) {
	const rows, limit = 1000, 10
	all := newTable[int]("thing")
	for i := range rows {
		all.add(all.newHandle(), i)
	}
	looks, shown, pages := 0, 0, 0
	for token, more := "", true; more; more = token != "" {
		values, next, err := all.list(backends.Page{Limit: limit, Token: token}, func(int) bool { looks++; return true })
		if err != nil {
			t.Fatal(err)
		}
		shown, pages, token = shown+len(values), pages+1, next
	}
	if shown != rows || looks > rows+pages {
		t.Errorf("%d pages show %d of %d rows after %d looks", pages, shown, rows, looks)
	}
}
