package share

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// ErrFlooded says that a share shows more than this driver ever wrote there.
var ErrFlooded = errors.New("no share of this driver has that much")

// Budget limits the number of bytes that a caller may read and keep. The zero value has no limit.
type Budget struct {
	most  int64
	spent atomic.Int64
}

// NewBudget returns a budget of the given number of bytes.
func NewBudget(most int64) *Budget { return &Budget{most: most} }

// Spend takes bytes. Kinds: Unavailable beyond the budget, which is ErrFlooded.
func (b *Budget) Spend(bytes int) error {
	if spent := b.spent.Add(int64(bytes)); b.most > 0 && spent > b.most {
		return backends.Errorf(backends.Unavailable, "more than %d MiB: %w", b.most>>20, ErrFlooded)
	}
	return nil
}

// Within returns the same Home with a budget for its reads of files and of names.
func (h *Home) Within(b *Budget) *Home {
	metered := *h
	metered.budget = b
	return &metered
}

// Until returns the same Home, whose reads of files and of names end with a context.
func (h *Home) Until(ctx context.Context) *Home {
	bound := *h
	bound.ended = ctx.Err
	return &bound
}

// Charge takes bytes from the Home's budget, if there is one. Kinds: as Budget.Spend; the context's error once that has
// ended.
func (h *Home) Charge(bytes int) error {
	if h.ended != nil {
		if err := h.ended(); err != nil {
			return err
		}
	}
	if h.budget == nil {
		return nil
	}
	return h.budget.Spend(bytes)
}
