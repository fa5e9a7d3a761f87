package nfs

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// gate stops a copy before one of its entries, until it is opened.
type gate struct {
	at      int64
	entries atomic.Int64
	reached chan struct{}
	opened  chan struct{}
}

// gateAt stops the next copies once, before the entry of that number.
func (w *world) gateAt(entry int64) *gate {
	g := &gate{at: entry, reached: make(chan struct{}), opened: make(chan struct{})}
	w.copies.entry = g.pass
	return g
}

func (g *gate) pass(ctx context.Context) {
	if g.entries.Add(1) != g.at {
		return
	}
	close(g.reached)
	select {
	case <-g.opened:
	case <-ctx.Done():
	}
}

func (g *gate) open() { close(g.opened) }

// outlived makes a call that ends while its copy is at the gate: the copy continues when the gate is opened.
func (w *world) outlived(g *gate, what string, call func(ctx context.Context) error) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- call(ctx) }()
	select {
	case <-g.reached:
	case err := <-answered:
		w.Fatalf("%s: answered before anything was copied: %v\nlog:\n%s", what, err, w.log)
	case <-time.After(patience):
		w.Fatalf("%s: no copy after %v", what, patience)
	}
	cancel()
	w.fails(what+" that takes longer than its call", <-answered, backends.Busy, "being copied")
}

func second[T any](_ T, err error) error { return err }
