package adversary

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// attempt is an orchestrator's time limit for a call, scaled down.
	attempt = 15 * time.Second
	// soon is how long to wait for something that may be left for a while, before acting on it.
	soon = 3 * time.Second
	// enough is the maximum number of attempts for work that gets less time than it needs.
	enough = 200
)

// errRefused says that a call was finally refused, which is allowed; errGone that the schedule is over.
var (
	errRefused = errors.New("refused")
	errGone    = errors.New("the schedule is over")
)

// limits are the time limits of the driver.
type limits struct {
	calls time.Duration // for a call, once all is calm
	lists time.Duration // for acknowledged changes to appear, and for remains to disappear
}

// patient returns limits that no busy machine reaches.
func patient() limits { return limits{2 * time.Minute, 2 * time.Minute} }

// again returns the limits for reproducing a violation, when exceeding them is not a new one.
func again() limits { return limits{40 * time.Second, 5 * time.Second} }

// request is a call that is retried until it ends.
type request struct {
	name     string       // such as CreateVolume v-1-0
	refusals []codes.Code // possible refusals, after which the caller gives up
	makes    bool         // it creates an item, which a sidecar gives up after a denial
	frees    bool         // it unmounts or deletes: full storage is no reason to fail
	enters   bool         // it gives access to a user who may free space: as above, if only the volumes' storage is full
	how      How
	within   time.Duration
	company  bool // another call may concern the same volume
	// disk is the disk of the request's volume; nil if there is none, or if the call may have to wait for others.
	disk *disk
	// send makes the call, and returns an answer that must be the same each time.
	send func(ctx context.Context) (string, error)
}

// ask makes a call until it succeeds or is finally refused, as the sidecars do.
func (w *world) ask(r request) error {
	began, calmed, first := time.Now(), time.Time{}, ""
	for n := 0; ; n++ {
		if w.failed() {
			return errGone
		}
		if w.calm.Load() && calmed.IsZero() {
			calmed = time.Now()
		}
		answers := w.attempt(r, n)
		w.heldUp(r, began, time.Now())
		ok, err := w.weigh(r, answers, &first, n, calmed)
		if err != nil || ok && (n >= 1 || r.how != Lost) {
			return err
		}
		if ok {
			<-time.After(r.within)
			continue // The answer was lost.
		}
		if w.tooLong(r, n, began, calmed, answers[0].err) {
			return errGone
		}
		pause := min(time.Duration(n+1)*5*time.Millisecond, 100*time.Millisecond)
		if r.how == Short {
			pause = 5 * time.Millisecond
		}
		<-time.After(pause)
	}
}

// answered is the result of an attempt.
type answered struct {
	text   string
	err    error
	opened bool // meanwhile a process opened devices
}

// attempt makes a call once, or twice at once; a success comes first.
func (w *world) attempt(r request, n int) []answered {
	limit := w.lasting(attempt)
	if r.how == Short || r.how == Hasty && n < 2 {
		limit = r.within
	}
	times := 1
	if r.how == Twice && n == 0 {
		times = 2
	}
	list := make([]answered, times)
	var group sync.WaitGroup
	for i := range list {
		group.Go(func() {
			began, opened := time.Now(), w.openings.since()
			text, err := w.deliver(r, limit)
			list[i] = answered{text, err, opened()}
			w.count(r.name, status.Code(err))
			w.note("%s attempt %d: %v %s %v", r.name, n, time.Since(began).Round(time.Millisecond), text, err)
		})
	}
	group.Wait()
	slices.SortStableFunc(list, func(a, b answered) int {
		switch {
		case a.err == nil && b.err != nil:
			return -1
		case a.err != nil && b.err == nil:
			return 1
		}
		return 0
	})
	return list
}

// deliver makes a call, and fails when another controller takes over, so that the caller turns to that one. The first
// one continues with the call then, or later.
func (w *world) deliver(r request, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(w.life, limit)
	over := w.takeover()
	done := make(chan answered, 1)
	go func() {
		defer cancel()
		text, err := r.send(ctx)
		done <- answered{text: text, err: err}
	}()
	select {
	case a := <-done:
		return a.text, a.err
	case <-over:
		return "", status.Error(codes.Unavailable, "another controller has taken over")
	}
}

// weigh judges all answers of an attempt, and reports whether one is a success: then something exists, or is gone, even
// if the other call was finally refused. If there is none, a final refusal is errRefused.
func (w *world) weigh(r request, answers []answered, first *string, n int, calmed time.Time) (ok bool, err error) {
	for _, a := range answers {
		switch {
		case a.err == nil && *first != "" && *first != a.text:
			w.blame("one answer: %s was answered with %q, and then with %q", r.name, *first, a.text)
			return false, errGone
		case a.err == nil:
			ok, *first = true, a.text
		case w.judge(r, a, n, calmed):
			err = errRefused
		}
	}
	if ok {
		return true, nil
	}
	return false, err
}

// judge reports whether a failure ends the call, and blames the driver for one that has no reason.
func (w *world) judge(r request, a answered, n int, calmed time.Time) (final bool) {
	code := status.Code(a.err)
	if a.err == nil {
		return false
	}
	if slices.Contains(r.refusals, code) || r.makes && code == codes.PermissionDenied && w.disturbed.Load() {
		if w.exact.Load() && !w.allows(r, a) {
			w.blame("all is calm, and nothing is refused: %s ended with %v", r.name, a.err)
		}
		return true
	}
	why := w.reason(r, a, n, calmed)
	if why != "" {
		w.blame("%s: %s ended with %v", why, r.name, a.err)
	}
	return false
}

// allows reports whether a final refusal has a reason although all is calm: an earlier fault, a process that had the
// device open, or other volumes and snapshots that fill a storage of limited size.
func (w *world) allows(r request, a answered) bool {
	w.mu.Lock()
	some := len(w.ledger.volumes)+len(w.ledger.snapshots) > 0
	w.mu.Unlock()
	full := r.makes && some && !w.setup.Cloud && status.Code(a.err) == codes.ResourceExhausted
	return w.disturbed.Load() || a.opened || full
}

// reason returns the invariant that a failure breaks; empty if the caller retries.
func (w *world) reason(r request, a answered, n int, calmed time.Time) string {
	quiet := w.undisturbed(r)
	switch status.Code(a.err) {
	case codes.Aborted:
		if n == 0 && quiet && r.how == Once {
			return "turned away though nobody else is at it"
		}
		return ""
	case codes.Unavailable:
		if w.mustFree(r, n, 8) && quietly(w.active.Load()) {
			return "freeing never needs to write first"
		}
		return ""
	case codes.DeadlineExceeded, codes.Canceled:
		return ""
	case codes.FailedPrecondition:
		if a.opened { // A process had the device open.
			return ""
		}
	default:
	}
	if why := w.needsRoom(r, n); why != "" {
		return why
	}
	if quiet || !calmed.IsZero() && time.Since(calmed) > w.limits.calls/4 {
		return "no reason"
	}
	return ""
}

// needsRoom returns the invariant that a failure breaks if full storage is its only reason.
func (w *world) needsRoom(r request, n int) string {
	switch {
	case w.mustFree(r, n, 2):
		return "freeing never needs to write first"
	case r.enters && n > 2 && w.volumesFull():
		return "who fills storage can come back to free it"
	}
	return ""
}

// undisturbed reports whether nothing but the call itself can make it fail.
func (w *world) undisturbed(r request) bool { return !w.disturbed.Load() && !r.company }

// mustFree reports whether a call that frees space has failed more often than allowed if storage is full and nothing
// else is wrong.
func (w *world) mustFree(r request, n, often int) bool { return r.frees && n > often && w.onlyFull() }

// quietly reports whether a fault leaves the driver running all the time.
func quietly(kind any) bool { return kind == "full" || kind == "full-state" || kind == "fixed-state" }

// tooLong blames the driver for a call that does not end.
func (w *world) tooLong(r request, n int, began, calmed time.Time, last error) bool {
	switch {
	case r.how == Short && n >= enough && time.Since(began) > w.limits.calls:
		w.blame("no end: %s is not done after %d attempts of %v: %v", r.name, n, r.within, last)
	case w.calm.Load() && !calmed.IsZero() && time.Since(calmed) > w.limits.calls && r.how != Short:
		w.blame("no end: %s is not done %v after the last fault: %v", r.name, w.limits.calls, last)
	case time.Since(began) > 2*w.limits.calls:
		w.blame("no end: %s is not done after %v: %v", r.name, 2*w.limits.calls, last)
	default:
		return false
	}
	return true
}

// count counts an attempt.
func (w *world) count(name string, code codes.Code) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var rpc string
	_, _ = fmt.Sscan(name, &rpc) // names begin with the RPC
	w.tally.Calls[rpc]++
	w.tally.Codes[code.String()]++
}
