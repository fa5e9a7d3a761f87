package nfs

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// The end waits for hanging work as long as its caller says, and names the work that it leaves, but not work that has
// ended.
func TestTheEndHasTheTimeOfItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &engine{copies: newCopies(paceOf(0)), usage: newUsages(), permits: &permits{},
			pool: share.NewPool(nil, share.DefaultIdle, slog.New(slog.DiscardHandler))}
		e.janitors = newJanitors(e)
		until := make(chan struct{})
		e.usage.look = func(context.Context, wish) (int64, error) { <-until; return 0, nil }
		e.usage.of(measured("hostile", "one"))
		e.copies.group.Go("a copy that ends", func() { <-e.copies.life.Done() })
		synctest.Wait()
		const given = 25 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), given)
		defer cancel()
		began := time.Now()
		err := e.close(ctx)
		if took := time.Since(began); took != given {
			t.Errorf("the end took %s, want the %s of its caller", took, given)
		}
		if !backends.Is(err, backends.Busy) || !strings.Contains(err.Error(), "hostile:/x") ||
			strings.Contains(err.Error(), "a copy") {
			t.Errorf("got %v, want Busy, naming the share of what is left alone", err)
		}
		close(until)
		synctest.Wait()
		if err := e.close(ctx); err != nil {
			t.Errorf("all has ended: %v", err)
		}
	})
}
