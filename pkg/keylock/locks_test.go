package keylock

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func mustLock(t *testing.T, l *Locks, keys ...string) func() {
	t.Helper()
	unlock, ok, busy := l.TryLock(keys...)
	if !ok {
		t.Fatalf("TryLock(%q): %q is busy, want all of them free", keys, busy)
	}
	if busy != "" {
		t.Fatalf("TryLock(%q) succeeded and names %q as busy", keys, busy)
	}
	return unlock
}

func mustBeBusy(t *testing.T, l *Locks, want string, keys ...string) {
	t.Helper()
	unlock, ok, busy := l.TryLock(keys...)
	if ok || unlock != nil || busy != want {
		t.Fatalf("TryLock(%q) = unlock %t, ok %t, busy %q; want only busy %q", keys, unlock != nil, ok, busy, want)
	}
}

func TestZeroValueLocksAndUnlocks(t *testing.T) {
	var l Locks
	unlock := mustLock(t, &l, "a")
	mustBeBusy(t, &l, "a", "a")
	mustLock(t, &l, "b")()
	unlock()
	mustLock(t, &l, "a")()
}

func TestAllKeysOrNone(t *testing.T) {
	l := New()
	unlock := mustLock(t, l, "b")
	mustBeBusy(t, l, "b", "a", "b", "c")
	mustLock(t, l, "a", "c")()
	unlock()
	mustLock(t, l, "a", "b", "c")()
}

func TestBusyIsTheFirstHeldArgument(t *testing.T) {
	l := New()
	defer mustLock(t, l, "x", "y")()
	mustBeBusy(t, l, "y", "a", "y", "x")
}

func TestKeyNamedTwiceAndNoKeys(t *testing.T) {
	l := New()
	unlock := mustLock(t, l, "a", "a")
	mustBeBusy(t, l, "a", "a")
	mustLock(t, l)()
	unlock()
	mustLock(t, l, "a")()
}

func TestEmptyKeyIsAKey(t *testing.T) {
	l := New()
	defer mustLock(t, l, "")()
	mustBeBusy(t, l, "", "")
}

func TestSecondUnlockDoesNotFreeTheNextHolder(t *testing.T) {
	l := New()
	first := mustLock(t, l, "a")
	first()
	second := mustLock(t, l, "a")
	first()
	mustBeBusy(t, l, "a", "a")
	second()
	mustLock(t, l, "a")()
}

func TestCallerMayReuseItsSlice(t *testing.T) {
	l := New()
	keys := []string{"a", "b"}
	unlock := mustLock(t, l, keys...)
	keys[0] = "z"
	unlock()
	mustLock(t, l, "a", "b")()
}

func TestUnlockRunsOnPanic(t *testing.T) {
	l := New()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not come through")
			}
		}()
		defer mustLock(t, l, "a")()
		panic("an operation failed badly")
	}()
	mustLock(t, l, "a")()
}

// Free keys take no memory: neither a key stays, nor the map that many keys have enlarged, which never shrinks.
func TestMemoryIsFreed(t *testing.T) {
	const count = 20000
	l := New()
	unlocks := make([]func(), count)
	for i := range unlocks {
		unlocks[i] = mustLock(t, l, strconv.Itoa(i))
	}
	if len(l.held) != count {
		t.Fatalf("holding %d keys, it knows %d: this test measures nothing", count, len(l.held))
	}
	for i, unlock := range unlocks {
		if i == count-1 && len(l.held) != 1 {
			t.Errorf("%d keys are known when one is held", len(l.held))
		}
		unlock()
	}
	if l.held != nil {
		t.Errorf("the grown map is kept with %d keys in it", len(l.held))
	}
}

// TestExclusion counts holders of each key while many goroutines want overlapping sets of keys.
func TestExclusion(t *testing.T) {
	const workers, rounds, keys = 16, 2000, 5
	l := New()
	var holders [keys]atomic.Int32
	var taken atomic.Int64
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for r := range rounds {
				a, b := (w+r)%keys, (w*r+1)%keys
				unlock, ok, busy := l.TryLock(fmt.Sprint(a), fmt.Sprint(b))
				if !ok {
					if busy == "" || !strings.Contains(fmt.Sprint(a, " ", b), busy) {
						t.Errorf("TryLock(%d, %d) names %q as busy", a, b, busy)
					}
					continue
				}
				taken.Add(1)
				hold(t, &holders[a])
				if a != b {
					hold(t, &holders[b])
					holders[b].Add(-1)
				}
				holders[a].Add(-1)
				unlock()
			}
		})
	}
	group.Wait()
	if taken.Load() == 0 {
		t.Error("nobody ever got a lock")
	}
	if len(l.held) != 0 {
		t.Errorf("%d keys are held at the end, want none", len(l.held))
	}
}

func hold(t *testing.T, holders *atomic.Int32) {
	if n := holders.Add(1); n != 1 {
		t.Errorf("%d holders of one key", n)
	}
	runtime.Gosched()
}

func BenchmarkTryLock(b *testing.B) {
	for _, keys := range [][]string{{"volume-1"}, {"volume-1", "snapshot-1"}} {
		b.Run(fmt.Sprintf("keys=%d", len(keys)), func(b *testing.B) {
			var l Locks
			b.ReportAllocs()
			for b.Loop() {
				unlock, _, _ := l.TryLock(keys...)
				unlock()
			}
		})
	}
	b.Run("busy", func(b *testing.B) {
		var l Locks
		defer func(unlock func(), _ bool, _ string) { unlock() }(l.TryLock("volume-1"))
		b.ReportAllocs()
		for b.Loop() {
			if _, ok, _ := l.TryLock("volume-1"); ok {
				b.Fatal("a held key was taken")
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		var l Locks
		var next atomic.Int64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			key := fmt.Sprintf("volume-%d", next.Add(1))
			for pb.Next() {
				unlock, _, _ := l.TryLock(key)
				unlock()
			}
		})
	})
}
