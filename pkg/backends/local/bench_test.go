package local

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// BenchmarkCreateDelete measures a volume's durable life. Its trash is removed in the background meanwhile.
func BenchmarkCreateDelete(b *testing.B) {
	for _, pool := range []string{"directory", "image"} {
		for _, inFlight := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/%d", pool, inFlight), func(b *testing.B) {
				f := newFixture(b)
				var next atomic.Int64
				parallel(b, inFlight, func() {
					v, err := f.Create(b.Context(), specIn(pool, fmt.Sprint(next.Add(1))))
					must(b, err)
					must(b, f.Delete(b.Context(), v.Handle))
				})
			})
		}
	}
}

// BenchmarkSourceRelease measures the backend's part of staging and unstaging.
func BenchmarkSourceRelease(b *testing.B) {
	f := newFixture(b)
	v := f.create("image", "one")
	for b.Loop() {
		_, err := f.Source(b.Context(), backends.Attachment{Handle: v.Handle})
		must(b, err)
		must(b, f.Release(b.Context(), v.Handle))
	}
}

// parallel distributes b.N calls over the given number of goroutines.
func parallel(b *testing.B, inFlight int, call func()) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan struct{})
	b.ResetTimer()
	for range inFlight {
		go func() {
			for left.Add(-1) >= 0 {
				call()
			}
			done <- struct{}{}
		}()
	}
	for range inFlight {
		<-done
	}
}
