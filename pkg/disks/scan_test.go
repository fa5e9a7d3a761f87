package disks

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestLooksAfterAnEvent has the kernel report a disk before udev is done with it.
func TestLooksAfterAnEvent(t *testing.T) {
	const ms, rescan = time.Millisecond, time.Minute
	for name, tt := range map[string]struct{ events, want []time.Duration }{
		"none": {nil, []time.Duration{rescan}},
		"one":  {[]time.Duration{0}, []time.Duration{100 * ms, 1100 * ms, 3100 * ms, rescan}},
		"another one in the pauses": {[]time.Duration{0, 2000 * ms},
			[]time.Duration{100 * ms, 1100 * ms, 2100 * ms, 3100 * ms, 5100 * ms, rescan}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), rescan+time.Second)
				defer cancel()
				e := &Engine{options: Options{Rescan: rescan}, scans: make(chan struct{}, 1)}
				for _, at := range tt.events {
					time.AfterFunc(at, e.look)
				}
				var looks []time.Duration
				began := time.Now()
				if err := e.scan(ctx, func(context.Context) { looks = append(looks, time.Since(began)) }); err != nil {
					t.Error(err)
				}
				if !slices.Equal(looks, tt.want) {
					t.Errorf("looked after %v, want %v", looks, tt.want)
				}
			})
		})
	}
}
