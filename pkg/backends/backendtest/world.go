package backendtest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// canary is in every fingerprint, and must not appear in any other output of the backend.
const canary = "c4n4ry-that-must-not-be-shown"

// world is an empty backend, with the test that checks it.
type world struct {
	testing.TB
	h        Harness
	patience time.Duration // the time limit for calls that should be prompt, even on a busy machine
	instance *backends.Instance
	c        backends.Backend
	n        backends.NodeBackend
	f        backends.Features
}

func newWorld(tb testing.TB, h Harness) *world {
	tb.Helper()
	w := &world{TB: tb, h: h, patience: cmp.Or(h.Patience, 2*time.Minute)}
	w.use(h.Open(tb))
	return w
}

// use makes the instance the current one.
func (w *world) use(instance *backends.Instance) {
	w.Helper()
	if instance == nil || instance.Controller == nil || instance.Node == nil {
		w.Fatal("the suite needs an instance that has both Controller and Node")
	}
	w.instance, w.c, w.n = instance, instance.Controller, instance.Node
	w.f = backends.Resolve(w.c, w.n)
}

// ctx returns a context that ends with the test, or after a generous time limit.
func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), 3*w.patience)
	w.Cleanup(cancel)
	return ctx
}

// spec returns a valid spec.
func (w *world) spec(name string) backends.Spec {
	spec := w.h.Spec(name)
	spec.Name, spec.Fingerprint = name, canary+" of "+name
	spec.Settings = map[string]string{"fsGroupChangePolicy": "OnRootMismatch", "csi.storage.k8s.io/fstype": "of " + name}
	return spec
}

// volume creates a volume.
func (w *world) volume(name string) *backends.Volume {
	w.Helper()
	v, err := w.c.Create(w.ctx(), w.spec(name))
	if err != nil || v == nil {
		w.Fatalf("Create %q: got %v, %v; want a volume", name, v, err)
	}
	return v
}

// get returns the current state of the volume.
func (w *world) get(handle string) *backends.Volume {
	w.Helper()
	v, err := w.c.Get(w.ctx(), handle)
	if err != nil || v == nil {
		w.Fatalf("Get %q: got %v, %v; want the volume", handle, v, err)
	}
	return v
}

// must ends the test unless err is nil.
func (w *world) must(what string, err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// fails checks that err is a well-formed failure of one of the kinds. It may be called from any goroutine.
func (w *world) fails(what string, err error, kinds ...backends.Kind) {
	w.Helper()
	if err == nil {
		w.Errorf("%s: succeeded, want a failure that is %v", what, kinds)
		return
	}
	typed, ok := errors.AsType[*backends.Error](err)
	if !ok {
		w.Errorf("%s: %v is no *backends.Error, want one that is %v", what, err, kinds)
		return
	}
	if !slices.Contains(kinds, typed.Kind) {
		w.Errorf("%s: the failure is %q, want %v: %v", what, typed.Kind, kinds, err)
	}
	if text := err.Error(); text == "" || strings.ContainsAny(text, "\x00\n") {
		w.Errorf("%s: the text of the failure is not one line: %q", what, text)
	}
	w.shown(what+": the failure", err.Error())
}

// shown checks a text that users can see.
func (w *world) shown(what, text string) {
	w.Helper()
	for _, secret := range append(slices.Clone(w.h.Secrets), canary) {
		if strings.Contains(text, secret) {
			w.Errorf("%s shows what must not be shown: %q", what, text)
		}
	}
}

// settled calls ask until the answer is final, because a backend may be busy with an earlier call.
func (w *world) settled(what string, ask func(ctx context.Context) error) error {
	w.Helper()
	ctx := w.ctx()
	for began := time.Now(); ; <-time.After(max(5*time.Millisecond, time.Since(began)/8)) {
		err := ask(ctx)
		if !backends.Is(err, backends.Busy) && !backends.Is(err, backends.Unavailable) {
			return err
		}
		if time.Since(began) > w.patience {
			w.Errorf("%s: still not settled after %v", what, w.patience)
			return err
		}
	}
}

// promptly runs a call that should not take long.
func (w *world) promptly(what string, call func()) {
	w.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
	case <-time.After(w.patience):
		w.Fatalf("%s: not back after %v", what, w.patience)
	}
}
