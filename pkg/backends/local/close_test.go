package local

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/dirlock"
)

// Close does not wait for hanging work once its time is over, and names it. While that work may write, no other process
// gets the data directory or a pool.
func TestTheEndLeavesWhatHangs(t *testing.T) {
	for name, hang := range map[string]func(f *fixture, until <-chan struct{}){
		"the copy of":                                hangingCopy,
		`pool "directory": the removal of trash`:     hangingTrash,
		`pool "directory": opening it, or making it`: hangingLook,
	} {
		t.Run(name, func(t *testing.T) {
			f, until := newFixture(t, PoolConfig{Name: "directory", Type: "directory"}), make(chan struct{})
			v := f.create("directory", "one")
			hang(f, until)
			over, cancel := context.WithCancel(t.Context())
			cancel()
			e, pool := f.engine, f.in("directory").path
			hasKind(t, "Close", e.Close(over), backends.Busy, name)
			f.opens(backends.Busy, f.dataDir)
			_, err := dirlock.Lock(pool)
			hasKind(t, "taking the pool over", err, backends.Busy, pool)
			close(until)
			f.reopen()
			f.holdsOnly("volumes/" + v.Handle)
		})
	}
}

// hangingCopy begins a copy that hangs, as in the kernel.
func hangingCopy(f *fixture, until <-chan struct{}) {
	v, err := f.Find(f.Context(), specIn("directory", "one"))
	must(f, err)
	begun := make(chan struct{})
	f.copying = func(context.Context) { close(begun); <-until }
	call, giveUp := context.WithCancel(f.Context())
	cloned := make(chan error, 1)
	go func() { cloned <- second(f.Clone(call, specIn("directory", "two"), v.Handle)) }()
	<-begun
	giveUp()
	hasKind(f, "Clone", <-cloned, backends.Busy)
}

// hangingTrash makes the janitor of a pool hang after a removal.
func hangingTrash(f *fixture, until <-chan struct{}) {
	p := f.in("directory")
	p.ledger.mu.Lock()
	p.janitor.add(waste{path: p.entry(trashFolder, "gone")})
	go func() { <-until; p.ledger.mu.Unlock() }()
}

// hangingLook makes a look at a pool hang.
func hangingLook(f *fixture, until <-chan struct{}) {
	p := f.in("directory")
	p.janitor.mu.Lock()
	f.tend(p)
	go func() { <-until; p.janitor.mu.Unlock() }()
}

// halfOver is a context that does not end, and half of whose time has passed.
type halfOver struct{ context.Context }

func (halfOver) Deadline() (time.Time, bool) { return time.Now(), true }

// A pool that is being opened when Close begins, and is served later during Close, is released like the others.
func TestTheEndFindsAPoolThatIsServedMeanwhile(t *testing.T) {
	f := newFixture(t, PoolConfig{Name: "late", Type: "directory"}, PoolConfig{Name: "other", Type: "directory"})
	late, other := f.in("late"), f.in("other")
	late.trouble.Store(&away{pool: late.name})
	f.work.Go("opening a pool", func() {
		<-other.janitor.ctx.Done() // Close has stopped the pools that are served.
		late.trouble.Store(nil)
	})
	must(t, f.Close(halfOver{t.Context()}))
	f.close = nil
	f.open()
	must(t, second(f.Create(t.Context(), specIn("late", "one"))))
}

// first runs a function at the first line of a log.
type first struct {
	once sync.Once
	do   func()
}

func (f *first) Write(line []byte) (int, error) {
	f.once.Do(f.do)
	return len(line), nil
}

// If the call that opens the backend ends while pools are being opened, all of them are released.
func TestOpenThatIsGivenUpGivesAllBack(t *testing.T) {
	f := newFixture(t)
	f.shut()
	ctx, giveUp := context.WithCancel(t.Context())
	options := f.options
	options.Log = slog.New(slog.NewTextHandler(&first{do: func() {
		giveUp()
		<-time.After(100 * time.Millisecond) // Stimulus: the pool takes a while yet.
	}}, nil))
	_, err := open(ctx, options)
	hasKind(t, "Open", err, backends.Unavailable)
	f.open()
}
