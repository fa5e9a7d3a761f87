package nfsdriver

import (
	"context"
	"flag"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/vm/nfsd"
)

var full = flag.Bool("full", false, "make more calls during each fault")

// TestFaults makes a server fail in every way, during calls.
func TestFaults(t *testing.T) {
	s := newSite(t, nfsd.Config{}).withOther()
	var rows []row
	for _, f := range faults() {
		calls := f.calls
		if *full {
			calls = append(slices.Clone(calls), f.full...)
		}
		for _, call := range calls {
			rows = append(rows, s.suffer(t, f, call)...)
		}
	}
	t.Log(table(rows))
	t.Run("key after squash", func(t *testing.T) {
		within := *s
		within.T = t
		within.keyAfterSquash(t.Context())
	})
}

// TestRestart restarts the server with a grace period of ten seconds, in which only existing clients may reclaim their
// open files.
func TestRestart(t *testing.T) {
	s := newSite(t, nfsd.Config{Grace: true}).withOther()
	restart := fault{
		name: "restarted, in grace", via: direct, limit: short, end: func(context.Context, *site) error { return nil },
		begin: func(ctx context.Context, s *site) error {
			if err := kill(ctx, s); err != nil {
				return err
			}
			return resume(ctx, s)
		},
	}
	restart.want = allowing("create", "stage")
	t.Log(table(slices.Concat(s.suffer(t, restart, "create"), s.suffer(t, restart, "stage"))))
}

// suffer makes a call while the server fails, and checks that all is well afterwards. It returns no row if -run
// excludes the subtest.
func (s *site) suffer(t *testing.T, f fault, call string) (rows []row) {
	t.Helper()
	t.Run(strings.ReplaceAll(f.name+" "+call, " ", "-"), func(t *testing.T) {
		within := *s
		within.T = t
		before := runtime.NumGoroutine()
		rows = []row{{fault: f.name, call: call, limit: f.limit}}
		within.one(f, call, &rows[0])
		within.nothingIsLeft(before)
		if t.Failed() {
			rows[0].failure = "FAILED"
		}
	})
	return rows
}

// one runs a row with its own driver. The driver takes both shares over from the previous row's before anything is
// measured, which costs one rejected call for each share.
func (s *site) one(f fault, call string, r *row) {
	driver := inprocess.Start(s, inprocess.Options{Backend: "nfs"})
	defer driver.Stop(s)
	ctx, cancel := context.WithTimeout(s.Context(), 4*patience)
	defer cancel()
	victim := newLife(s.T, driver.Conn, "victim", f.via, s.export.Path)
	other := newLife(s.T, driver.Conn, "other", s.other.Address, s.other.Path)
	s.must(newLife(s.T, driver.Conn, "before", f.via, s.export.Path).patiently(ctx, "create", "delete"))
	s.must(newLife(s.T, driver.Conn, "before", s.other.Address, s.other.Path).patiently(ctx, "create", "delete"))
	s.must(victim.upTo(ctx, call))
	s.must(f.begin(ctx, s))
	others := make(chan answer, 1)
	go func() { others <- timed(func() error { return other.all(ctx, steps()) }) }()
	r.first = s.ask(ctx, f, victim, call)
	<-time.After(pause)
	r.second = s.ask(ctx, f, victim, call)
	meanwhile := <-others
	s.must(f.end(ctx, s))
	r.other = meanwhile.took
	s.check(meanwhile.err)
	r.recovered = timed(func() error { s.eventually(ctx, victim, call); return nil }).took
	for _, step := range steps()[slices.Index(steps(), call)+1:] {
		s.eventually(ctx, victim, step)
	}
	s.tidy(driver)
}

// ask makes a call that must end within its limit with an allowed answer.
func (s *site) ask(ctx context.Context, f fault, l *life, call string) answer {
	ctx, cancel := context.WithTimeout(ctx, f.limit)
	defer cancel()
	a := timed(func() error { return l.do(ctx, call) })
	if !f.allows(call, status.Code(a.err)) {
		s.Errorf("%s: %v", call, a.err)
	}
	if a.took > f.limit+slack {
		s.Errorf("%s took %v, and had %v", call, a.took, f.limit)
	}
	return a
}

// eventually repeats a call until it succeeds, as an orchestrator does.
func (s *site) eventually(ctx context.Context, l *life, step string) {
	for begun := time.Now(); ; <-time.After(200 * time.Millisecond) {
		once, cancel := context.WithTimeout(ctx, 15*time.Second)
		err := l.do(once, step)
		cancel()
		if err == nil {
			return
		}
		if time.Since(begun) > patience {
			s.Fatalf("%s: not after %v: %v", step, patience, err)
		}
	}
}

func timed(work func() error) answer {
	begun := time.Now()
	err := work()
	return answer{err, time.Since(begun)}
}
