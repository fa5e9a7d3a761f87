package pace_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/pace"
	"github.com/stowage-csi/stowage/pkg/failure"
)

func pacer() *pace.Pacer {
	return pace.New(func(string) pace.Limit { return pace.Limit{Burst: 10, PerSecond: 5} })
}

// took returns how long n requests take that are sent one after another.
func took(t *testing.T, p *pace.Pacer, action string, n int) time.Duration {
	t.Helper()
	began := time.Now()
	for range n {
		if err := p.Wait(t.Context(), action); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(began)
}

func TestBurstThenRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer()
		if d := took(t, p, "Attach", 10); d != 0 {
			t.Errorf("a burst of 10 takes %v", d)
		}
		if d := took(t, p, "Attach", 50); d != 10*time.Second {
			t.Errorf("50 more take %v, want 10s", d)
		}
		if d := took(t, p, "Detach", 10); d != 0 {
			t.Errorf("another action waits for %v", d)
		}
	})
}

// A caller that would wait in vain fails at once, and takes no turn from others.
func TestHopelessIsBusyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer()
		took(t, p, "Attach", 10)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		err := p.Wait(ctx, "Attach")
		if !failure.Is(err, failure.Busy) || !strings.Contains(err.Error(), "Attach") || time.Since(began) != 0 {
			t.Errorf("got %v after %v, want Busy at once", err, time.Since(began))
		}
		if d := took(t, p, "Attach", 1); d != 200*time.Millisecond {
			t.Errorf("the next one waits for %v, want 200ms", d)
		}
	})
}

func TestRefusalsSlowDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer()
		took(t, p, "Attach", 10)
		p.Refused("Attach")
		if d := took(t, p, "Attach", 5); d != 2*time.Second {
			t.Errorf("after a refusal 5 requests take %v, want 2s", d)
		}
		for range 20 {
			p.Refused("Attach")
		}
		if d := took(t, p, "Attach", 5); d != 8*time.Second {
			t.Errorf("after many refusals 5 requests take %v, want 8s", d)
		}
		for range 60 {
			p.Accepted("Attach")
		}
		if d := took(t, p, "Attach", 5); d != time.Second {
			t.Errorf("when all is well again 5 requests take %v, want 1s", d)
		}
	})
}

func TestNoMoreArePreparedThanCanBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer()
		var leave func()
		for range 20 { // 10 at once, and 5 a second
			var err error
			if leave, err = p.Enter("Attach", 2*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.Enter("Attach", 2*time.Second); !failure.Is(err, failure.Busy) ||
			!strings.Contains(err.Error(), "Attach") {
			t.Errorf("one too many: got %v, want Busy that names the action", err)
		}
		if _, err := p.Enter("Detach", 2*time.Second); err != nil {
			t.Errorf("another action: %v", err)
		}
		leave()
		leave()
		if _, err := p.Enter("Attach", 2*time.Second); err != nil {
			t.Errorf("after one has left: %v", err)
		}
		if _, err := p.Enter("Attach", 2*time.Second); err == nil {
			t.Error("who leaves twice makes room for two")
		}
	})
}

func TestUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pacer()
		if used := p.Used(); used != 0 {
			t.Errorf("at first: %v", used)
		}
		took(t, p, "Attach", 5)
		if used := p.Used(); used != 0.5 {
			t.Errorf("after half the burst: %v", used)
		}
		took(t, p, "Detach", 10)
		if used := p.Used(); used != 1 {
			t.Errorf("after a burst: %v", used)
		}
		for range 10 {
			go func() { _ = p.Wait(t.Context(), "Detach") }()
		}
		synctest.Wait()
		if used := p.Used(); used != 2 {
			t.Errorf("with as many waiting: %v", used)
		}
		<-time.After(5 * time.Second)
		if used := p.Used(); used > 0.01 {
			t.Errorf("after a pause: %v", used)
		}
	})
}
