package nfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/tests/stall"
)

// ending is a context that ends after its Err was called the given number of times.
type ending struct {
	context.Context
	left int
}

func (e *ending) Err() error {
	if e.left--; e.left < 0 {
		return context.Canceled
	}
	return nil
}

// halfChanged creates the draft of a change of a volume that does not exist, which a look ends, and returns its path.
func (w *world) halfChanged(spec backends.Spec) (path string) {
	w.Helper()
	_, h := w.opened(spec)
	id, err := h.ID(string(volumeKind), spec.Name)
	w.must(err)
	w.write("{}", share.HomeName, share.Staging, id+suffix+".draft")
	return w.path(share.HomeName, share.Staging, id+suffix+".draft")
}

// A look ends with its call, at any step, and proves nothing then.
func TestALookEndsWithItsCall(t *testing.T) {
	w, least := newWorld(t), 8
	w.quiet(specOf("one"))
	w.make(specOf("earlier"))
	path := w.halfChanged(specOf("one"))
	for n := 0; ; n++ {
		m := w.making(specOf("one"), volumeCalls)
		err := m.absent(&ending{t.Context(), n}, volumeKind, "one")
		if _, left := os.Lstat(path); n == 0 && left != nil {
			t.Errorf("after the end of its call a look has ended a change: %v", left)
		}
		if err == nil && n < least {
			t.Errorf("a look asks %d times whether its call has ended, want %d at least", n, least)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("ended at %d: %v", n, err)
		}
	}
}

// A look at a server that stops ends with its call. When the server continues, the look does not, and blocks no other
// call.
func TestALookAtAServerThatStops(t *testing.T) {
	w, slow := newSlowWorld(t)
	w.quiet(onSlow("x"))
	v := w.make(onSlow("earlier"))
	w.root = slow.Real
	path := w.halfChanged(onSlow("one"))
	permits := func() []string {
		t.Helper()
		names, err := filepath.Glob(w.path(share.HomeName, share.Controllers, "*"))
		w.must(err)
		return names
	}
	had := permits()
	slow.StopAt(t, stall.Change, 1) // It gives its permit another name.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := make(chan bool, 1)
	go func() { answered <- w.IsAbsent(ctx, onSlow("one")) }()
	w.eventually("coming to a change", func() bool { return slow.Stopped(t) })
	if now := permits(); !slices.Equal(now, had) {
		t.Errorf("the server has stopped with the permits %q, want %q: the look had to come to its first change", now, had)
	}
	cancel()
	if <-answered {
		t.Error("a look that was given up proves something")
	}
	slow.Continue(t)
	w.eventually("the end of the look", func() bool { return w.pool.GivenUp() == 0 })
	w.must(second(w.Get(t.Context(), v.Handle)))
	w.must(second(os.Lstat(path)))
}

// A look has half of the time that its call has left, so that the caller gets the refusal. With too little time it is
// not begun.
func TestTheTimeOfALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for left, want := range map[time.Duration]time.Duration{
			time.Minute: 30 * time.Second, 2 * leastLook: leastLook, 2*leastLook - 2: 0, 0: 0,
		} {
			call, cancel := context.WithTimeout(t.Context(), left)
			ctx, done := looking(call)
			until, _ := ctx.Deadline()
			if has := time.Until(until); has != want || (ctx.Err() != nil) != (want == 0) {
				t.Errorf("of %s a look has %s, %v; want %s", left, has, ctx.Err(), want)
			}
			done()
			cancel()
		}
		ctx, done := looking(t.Context())
		if _, limited := ctx.Deadline(); limited || ctx.Err() != nil {
			t.Errorf("a look for a call without an end is limited: %t, %v", limited, ctx.Err())
		}
		done()
	})
}

// The log says why nothing is proven, because an operator may have to act, but not for each of very many looks.
func TestTheLogSaysWhyNothingIsProven(t *testing.T) {
	w, spec := newWorld(t), specOf("one")
	w.otherWorld().make(specOf("another's"))
	told := func() int { return strings.Count(w.log.String(), "make a volume there, or delete or change one") }
	w.IsAbsent(t.Context(), spec)
	if text := w.log.String(); told() != 1 || !strings.Contains(text, "name=one") || !strings.Contains(text, testServer) {
		t.Errorf("the log does not say why nothing is proven of what, and where:\n%s", text)
	}
	const many = 2 * unprovenBurst
	for range many {
		w.IsAbsent(t.Context(), spec)
	}
	if n := told(); n < unprovenBurst || n >= many {
		t.Errorf("of %d looks the log tells %d times, want %d and a few", many, n, unprovenBurst)
	}
	empty := onSlow("one")
	w.must(os.MkdirAll(filepath.Join(filepath.Dir(filepath.Dir(w.root)), slowServer, "export"), 0o755))
	w.IsAbsent(t.Context(), empty)
	if text := w.log.String(); !strings.Contains(text, slowServer+":/export has no directory .stowage") {
		t.Error("of a second share, which is empty, the log does not say why nothing is proven")
	}
}

// The log also says why no share is asked: then an operator has to change the configuration.
func TestTheLogSaysWhyNoShareIsAsked(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("earlier"))
	w.config = &Config{OnlyShares: true, Shares: []ShareConfig{{Name: "x", Server: "elsewhere", Share: testShare}}}
	w.reopen()
	unnamed := specOf("one")
	unnamed.Parameters = &Parameters{ShareName: "gone"}
	for reason, isAbsent := range map[string]func() bool{
		"has no share": func() bool { return w.IsAbsent(t.Context(), unnamed) },
		"onlyShares":   func() bool { return w.IsAbsent(t.Context(), specOf("one")) },
		"kind=snapshot": func() bool {
			return w.IsSnapshotAbsent(t.Context(), backends.SnapshotSpec{Name: "one", Volume: v.Handle})
		},
		"kind=group": func() bool {
			return w.IsGroupAbsent(t.Context(), backends.GroupSpec{Name: "one", Volumes: []string{v.Handle}})
		},
	} {
		if isAbsent() {
			t.Errorf("%s: it is absent", reason)
		}
		if text := w.log.String(); !strings.Contains(text, reason) || !strings.Contains(text, "name=one") {
			t.Errorf("the log does not say %q:\n%s", reason, text)
		}
	}
}
