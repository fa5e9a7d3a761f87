package backendtest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// thingChecks check the promises about creating, finding and deleting that apply to all kinds of things.
func thingChecks(kind func(w *world) things) []check {
	with := func(run func(w *world, ts things)) func(w *world) {
		return func(w *world) { run(w, kind(w)) }
	}
	return []check{
		{"what is made is found again in every field", with(foundAgain)},
		{"a name that is taken is Exists and nothing changes", with(nameTaken)},
		{"of sixteen concurrent calls for one name one wins", with(oneWins)},
		{"concurrent calls for different names all succeed", with(manyNames)},
		{"concurrent creation and deletion leave all or nothing", with(createAndDelete)},
		{"any text is a name", with(strangeNames)},
		{"what is deleted is gone and its name is free", with(deletedIsGone)},
		{"what was never there is NotFound", with(neverThere)},
		{"a request that has ended changes nothing", with(endedRequest)},
		{"a request that ends on the way leaves all or nothing", with(endingRequest)},
	}
}

// make creates a thing, which must succeed.
func (w *world) make(ts things, name string) thing {
	w.Helper()
	t, err := ts.create(w.ctx(), name)
	if err != nil {
		w.Fatalf("creating %q: %v", name, err)
	}
	return t
}

// made creates a thing like an orchestrator, which retries until the answer is final. Then the thing may have been
// created by an earlier request.
func (w *world) made(ts things, name string) (t thing, err error) {
	w.Helper()
	return w.madeAfter(ts, name, false)
}

// madeAfter is made; unsure says that earlier requests may still take effect.
func (w *world) madeAfter(ts things, name string, unsure bool) (t thing, err error) {
	w.Helper()
	err = w.settled("creating", func(ctx context.Context) (err error) {
		if t, err = ts.create(ctx, name); unsure && backends.Is(err, backends.Exists) {
			t, err = ts.find(ctx, name)
		}
		unsure = true
		return err
	})
	return t, err
}

// same checks that the thing is found unchanged by name and by handle.
func (w *world) same(ts things, name string, want thing) {
	w.Helper()
	found, err := ts.find(w.ctx(), name)
	w.must(fmt.Sprintf("finding %q", name), err)
	if !reflect.DeepEqual(found, want) {
		w.Errorf("found under the name %q:\n%+v\nwant\n%+v", name, found.value, want.value)
	}
	got, err := ts.get(w.ctx(), want.handle)
	w.must(fmt.Sprintf("getting %q", want.handle), err)
	if !reflect.DeepEqual(got, want) {
		w.Errorf("got with the handle %q:\n%+v\nwant\n%+v", want.handle, got.value, want.value)
	}
}

// listed returns the handles of all things; ok is false if the backend cannot list them.
func (w *world) listed(ts things) (handles []string, ok bool) {
	w.Helper()
	if ts.list == nil {
		return nil, false
	}
	all, next, err := ts.list(w.ctx(), backends.Page{})
	if err != nil || next != "" {
		w.Fatalf("listing all: got the token %q and the error %v, want neither", next, err)
	}
	for _, t := range all {
		handles = append(handles, t.handle)
	}
	return handles, true
}

// onlyNew checks that exactly the things of before and these handles are listed.
func (w *world) onlyNew(ts things, before []string, handles ...string) {
	w.Helper()
	after, ok := w.listed(ts)
	if !ok {
		return
	}
	want := append(slices.Clone(before), handles...)
	slices.Sort(want)
	slices.Sort(after)
	if !slices.Equal(after, want) {
		w.Errorf("the list has the handles\n%q\nwant\n%q", after, want)
	}
}

func foundAgain(w *world, ts things) {
	before, _ := w.listed(ts)
	t := w.make(ts, "one")
	if len(t.handle) == 0 || len(t.handle) > 128 {
		w.Errorf("the handle %q has %d bytes, want 1 to 128", t.handle, len(t.handle))
	}
	w.shown("the handle", t.handle)
	w.same(ts, "one", t)
	w.onlyNew(ts, before, t.handle)
	ts.usable(t)
}

func nameTaken(w *world, ts things) {
	before, _ := w.listed(ts)
	t := w.make(ts, "one")
	_, err := ts.create(w.ctx(), "one")
	w.fails("creating the same again", err, backends.Exists)
	for what, create := range ts.others {
		w.fails("creating it again "+what, create(w.ctx(), "one"), backends.Exists)
	}
	w.same(ts, "one", t)
	w.onlyNew(ts, before, t.handle)
}

// eachOf makes n concurrent calls and waits for them.
func (w *world) eachOf(n int, call func(i int)) {
	w.Helper()
	w.promptly(fmt.Sprintf("%d concurrent calls", n), func() {
		var calls sync.WaitGroup
		start := make(chan struct{})
		for i := range n {
			calls.Go(func() {
				<-start
				call(i)
			})
		}
		close(start)
		calls.Wait()
	})
}

func oneWins(w *world, ts things) {
	const callers = 16
	before, _ := w.listed(ts)
	made, errs := make([]thing, callers), make([]error, callers)
	w.eachOf(callers, func(i int) { made[i], errs[i] = ts.create(w.ctx(), "one") })
	var winners []thing
	for i, err := range errs {
		if err == nil {
			winners = append(winners, made[i])
			continue
		}
		w.fails("a concurrent creation that did not win", err, backends.Exists, backends.Busy)
	}
	if len(winners) != 1 {
		w.Fatalf("%d of %d concurrent creations of one name succeeded, want 1", len(winners), callers)
	}
	w.same(ts, "one", winners[0])
	w.onlyNew(ts, before, winners[0].handle)
	w.must("deleting it", w.settled("deleting it",
		func(ctx context.Context) error { return ts.delete(ctx, winners[0].handle) }))
	_, err := ts.find(w.ctx(), "one")
	w.fails("finding it then", err, backends.NotFound)
}

func manyNames(w *world, ts things) {
	const callers = 8
	before, _ := w.listed(ts)
	made := make([]thing, callers)
	w.eachOf(callers, func(i int) {
		var err error
		if made[i], err = w.made(ts, fmt.Sprint("name ", i)); err != nil {
			w.Errorf("creating one of several at a time: %v", err)
		}
	})
	if w.Failed() {
		return
	}
	var handles []string
	for i, t := range made {
		w.same(ts, fmt.Sprint("name ", i), t)
		handles = append(handles, t.handle)
	}
	if slices.Sort(handles); len(slices.Compact(slices.Clone(handles))) != callers {
		w.Errorf("things of different names share handles: %q", handles)
	}
	w.onlyNew(ts, before, handles...)
}

func createAndDelete(w *world, ts things) {
	before, _ := w.listed(ts)
	for range 16 {
		w.eachOf(4, func(i int) {
			if i%2 == 0 {
				if _, err := ts.create(w.ctx(), "one"); err != nil {
					w.fails("creating while others delete", err, backends.Exists, backends.Busy)
				}
				return
			}
			w.deleteIfFound(ts)
		})
		w.allOrNothing(ts, "one")
		w.onlyNew(ts, before)
	}
}

// deleteIfFound deletes like an orchestrator that found the thing by name.
func (w *world) deleteIfFound(ts things) {
	t, err := ts.find(w.ctx(), "one")
	if err != nil {
		w.fails("finding while others create", err, backends.NotFound, backends.Busy)
		return
	}
	if err := ts.delete(w.ctx(), t.handle); err != nil {
		w.fails("deleting while others delete", err, backends.NotFound, backends.Busy)
	}
}

// allOrNothing checks that a thing is either complete or absent, and removes it. Its name is then free.
func (w *world) allOrNothing(ts things, name string) {
	w.Helper()
	var found thing
	err := w.settled("finding", func(ctx context.Context) (err error) {
		found, err = ts.find(ctx, name)
		return err
	})
	if err == nil {
		w.same(ts, name, found)
		ts.usable(found)
		w.must("deleting it", w.settled("deleting", func(ctx context.Context) error { return ts.delete(ctx, found.handle) }))
	} else {
		w.fails("finding what is not there", err, backends.NotFound)
	}
	again, err := w.madeAfter(ts, name, err != nil)
	w.must("creating it again", err)
	w.must("deleting it again", w.settled("deleting it again",
		func(ctx context.Context) error { return ts.delete(ctx, again.handle) }))
}

func strangeNames(w *world, ts things) {
	before, _ := w.listed(ts)
	made := map[string]thing{}
	var handles []string
	for _, name := range oddNames() {
		made[name] = w.make(ts, name)
		handles = append(handles, made[name].handle)
	}
	for name, t := range made {
		w.same(ts, name, t)
	}
	w.onlyNew(ts, before, handles...)
	for name, t := range made {
		w.same(ts, name, t) // No earlier deletion was of this one.
		w.must(fmt.Sprintf("deleting %q", name), ts.delete(w.ctx(), t.handle))
		_, err := ts.find(w.ctx(), name)
		w.fails(fmt.Sprintf("finding %q then", name), err, backends.NotFound)
	}
}

func deletedIsGone(w *world, ts things) {
	before, _ := w.listed(ts)
	kept, t := w.make(ts, "kept"), w.make(ts, "deleted")
	w.must("deleting", ts.delete(w.ctx(), t.handle))
	_, err := ts.get(w.ctx(), t.handle)
	w.fails("getting it then", err, backends.NotFound)
	_, err = ts.find(w.ctx(), "deleted")
	w.fails("finding it then", err, backends.NotFound)
	w.fails("deleting it twice", ts.delete(w.ctx(), t.handle), backends.NotFound)
	w.same(ts, "kept", kept)
	w.onlyNew(ts, before, kept.handle)
	again := w.make(ts, "deleted")
	w.same(ts, "deleted", again)
	w.onlyNew(ts, before, kept.handle, again.handle)
}

func neverThere(w *world, ts things) {
	t := w.make(ts, "one")
	for _, name := range append(oddNames(), "", t.handle) {
		_, err := ts.find(w.ctx(), name)
		w.fails(fmt.Sprintf("finding the name %.40q", name), err, backends.NotFound)
	}
	for _, handle := range oddHandles(t.handle) {
		_, err := ts.get(w.ctx(), handle)
		w.fails(fmt.Sprintf("getting the handle %.40q", handle), err, backends.NotFound)
		w.fails(fmt.Sprintf("deleting the handle %.40q", handle), ts.delete(w.ctx(), handle), backends.NotFound)
	}
	w.same(ts, "one", t)
}
