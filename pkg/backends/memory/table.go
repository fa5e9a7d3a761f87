package memory

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// table stores items of one kind. Its callers hold the lock.
type table[T any] struct {
	kind  string
	rows  map[string]row[T] // by handle
	order []row[T]          // the same rows, by number
	names map[string]string // name to handle; reserved before the row exists
	last  int64
	// epoch distinguishes this table's tokens from those of another table or process.
	epoch string
}

// row is an item with its position in enumerations, which follow the order of creation.
type row[T any] struct {
	number int64
	value  T
}

func newTable[T any](kind string) *table[T] {
	return &table[T]{kind: kind, rows: map[string]row[T]{}, names: map[string]string{}, epoch: rand.Text()}
}

// newHandle returns a handle that was never used before; it is valid as a file name.
func (t *table[T]) newHandle() string { return t.kind + "-" + rand.Text() }

// free checks that no item has the name or is being created under it.
func (t *table[T]) free(name string) error {
	handle, taken := t.names[name]
	if !taken {
		return nil
	}
	if _, made := t.rows[handle]; made {
		return backends.Errorf(backends.Exists, "there is a %s %q already", t.kind, name)
	}
	return backends.Errorf(backends.Busy, "%s %q is being made: ask again", t.kind, name)
}

func (t *table[T]) add(handle string, value T) {
	t.last++
	t.rows[handle] = row[T]{t.last, value}
	t.order = append(t.order, t.rows[handle])
}

func (t *table[T]) remove(handle, name string) {
	if r, ok := t.rows[handle]; ok {
		at := t.beyond(r.number)
		t.order = slices.Delete(t.order, at-1, at)
	}
	delete(t.rows, handle)
	delete(t.names, name)
}

func (t *table[T]) find(name string) (T, error) {
	if r, ok := t.rows[t.names[name]]; ok {
		return r.value, nil
	}
	var none T
	return none, backends.Errorf(backends.NotFound, "there is no %s named %q", t.kind, name)
}

func (t *table[T]) get(handle string) (T, error) {
	if r, ok := t.rows[handle]; ok {
		return r.value, nil
	}
	var none T
	return none, backends.Errorf(backends.NotFound, "there is no %s with the handle %q", t.kind, handle)
}

// list returns the page of the items for which keep returns true. Tokens are row numbers, so that a page begins in the
// right place even if the row before it is gone.
func (t *table[T]) list(page backends.Page, keep func(T) bool) (values []T, next string, err error) {
	after, err := t.position(page.Token)
	if err != nil {
		return nil, "", err
	}
	for _, r := range t.order[t.beyond(after):] {
		if !keep(r.value) {
			continue
		}
		if page.Limit > 0 && len(values) == page.Limit {
			return values, t.token(after), nil
		}
		values, after = append(values, r.value), r.number
	}
	return values, "", nil
}

// beyond returns the position of the first row with a higher number.
func (t *table[T]) beyond(number int64) int {
	at, _ := slices.BinarySearchFunc(t.order, number+1, func(r row[T], n int64) int { return cmp.Compare(r.number, n) })
	return at
}

func (t *table[T]) token(number int64) string { return fmt.Sprintf("%s-%d", t.epoch, number) }

// position reverses token.
func (t *table[T]) position(token string) (int64, error) {
	if token == "" {
		return 0, nil
	}
	number, err := strconv.ParseInt(strings.TrimPrefix(token, t.epoch+"-"), 10, 64)
	if err != nil || number < 1 || number > t.last || token != t.token(number) {
		return 0, backends.Errorf(backends.Busy, "the token %q is not of this enumeration: start again without one", token)
	}
	return number, nil
}
