package adversary

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestHeldUp makes calls beside a server that is silent from the fifth second to the twentieth: only a call that waits
// for the server of another volume is blamed.
func TestHeldUp(t *testing.T) {
	own, silent := &disk{}, &disk{}
	for name, test := range map[string]struct {
		disk     *disk
		at, till int // seconds
		each     int // seconds until an attempt is refused; 0 for never
		blamed   bool
	}{
		"from before the silence":      {own, 4, 18, 0, true},
		"in the middle of it":          {own, 6, 19, 0, true},
		"until it ends":                {own, 7, 21, 0, true},
		"refused again and again":      {own, 6, 19, 1, true},
		"for a while":                  {own, 6, 17, 0, false},
		"mostly before it":             {own, 2, 16, 0, false},
		"mostly after it":              {own, 9, 23, 0, false},
		"before it":                    {own, 0, 4, 0, false},
		"after it":                     {own, 21, 35, 0, false},
		"for the silent server's":      {silent, 4, 18, 0, false},
		"for no volume":                {nil, 4, 18, 0, false},
		"refused, and nobody's volume": {nil, 6, 19, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{life: context.Background(), tally: NewTally(), limits: patient()}
				w.disturbed.Store(true)
				began := time.Now()
				at := func(seconds int) <-chan time.Time {
					return time.After(time.Until(began.Add(time.Duration(seconds) * time.Second)))
				}
				var group sync.WaitGroup
				group.Go(func() {
					<-at(5)
					w.fallsSilent(silent)
					<-at(20)
					w.isHeard()
				})
				<-at(test.at)
				r := request{name: "NodeUnstageVolume v-1", disk: test.disk}
				r.send = func(ctx context.Context) (string, error) {
					refused := make(<-chan time.Time)
					if test.each > 0 {
						refused = time.After(time.Duration(test.each) * time.Second)
					}
					select {
					case <-at(test.till):
						return "", nil
					case <-refused:
					case <-ctx.Done():
					}
					return "", status.Error(codes.Unavailable, "another call is under way")
				}
				_ = w.ask(r) // only the blame counts
				group.Wait()
				if blamed := len(w.wrong) > 0; blamed != test.blamed {
					t.Errorf("blamed: %q, want %t", w.wrong, test.blamed)
				}
				if text := strings.Join(w.wrong, ""); test.blamed && !strings.Contains(text, r.name) {
					t.Errorf("it is not said which call was held up: %q", text)
				}
			})
		})
	}
}

// TestRequestFor shows that the calls for a volume are for its disk.
func TestRequestFor(t *testing.T) {
	w := &world{setup: overLocal("xfs"), disks: []*disk{{kind: "xfs"}, {kind: "ext4"}, {kind: "tmpfs"}}}
	for class, want := range []string{"xfs", "xfs", "ext4"} {
		r := newActor(w, 0, nil).requestFor(Step{}, &volume{name: "v-1", class: class}, "DeleteVolume", false)
		if r.name != "DeleteVolume v-1" || r.disk == nil || r.disk.kind != want {
			t.Errorf("a request for class %d is %+v, want one for the %s", class, r, want)
		}
	}
}

// TestVain lets volumes come into use and go out of it beside a server that is silent from the fifth second to the
// eighteenth, and checks whether that could have shown anything.
func TestVain(t *testing.T) {
	own, silent := &disk{}, &disk{}
	type turn struct {
		disk     *disk
		at, till int // seconds
	}
	for name, test := range map[string]struct {
		turns []turn // by their ends
		want  string
	}{
		"both":                              {[]turn{{own, 6, 7}, {silent, 4, 19}}, ""},
		"none":                              {nil, "no volume of the silent server"},
		"the silent server's alone":         {[]turn{{silent, 4, 19}}, "no other volume"},
		"the silent server's beside before": {[]turn{{own, 4, 6}, {silent, 4, 19}}, "no other volume"},
		"the silent server's beside later":  {[]turn{{silent, 4, 19}, {own, 18, 20}}, "no other volume"},
		"others alone":                      {[]turn{{own, 6, 7}}, "no volume of the silent server"},
		"others, and it before and later": {[]turn{{silent, 2, 5}, {own, 6, 7}, {silent, 18, 20}},
			"no volume of the silent server"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
				w := &world{silence: silence{disk: silent, began: at(5), ended: at(18)}}
				for _, turn := range test.turns {
					<-time.After(time.Until(at(turn.till)))
					w.turned(turn.disk, at(turn.at))
				}
				if vain := w.silence.vain(); (vain == "") != (test.want == "") || !strings.Contains(vain, test.want) {
					t.Errorf("%q, want %q", vain, test.want)
				}
			})
		})
	}
	if vain := (silence{}).vain(); vain != "no server fell silent" {
		t.Errorf("without a silence: %q", vain)
	}
}

// TestLateFault makes a fault wait for a slow track, and for one that comes to a Cycle, which lasts until all is calm.
func TestLateFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{tally: NewTally(), limits: patient()}
		fault := &Fault{Kind: "unknown", After: time.Second, Late: true}
		wrong := w.run(Schedule{Tracks: [][]Step{{{Op: Pause, Count: 1, Fault: fault}}, {{Op: Pause, Count: 60_000}}}})
		text := strings.Join(w.log, "\n")
		if len(wrong) != 1 || !strings.Contains(text, "61.000 VIOLATION there is no fault") {
			t.Errorf("want a fault after 61 seconds:\n%s", text)
		}
	})
	ready := false
	a := newActor(&world{}, 0, nil)
	a.ready = func() { ready = true }
	for count, want := range map[int]bool{0: true, 1000: false, 1001: true} {
		if got := a.cyclesOn(Step{Op: Cycle, Count: count}, 1000); got != want {
			t.Errorf("a Cycle of %d turns goes on after 1000: %t, want %t", count, got, want)
		}
	}
	a.calm.Store(true)
	if a.cycle(Step{Op: Cycle}, nil); !ready {
		t.Error("a track that comes to a Cycle is not ready")
	}
}
