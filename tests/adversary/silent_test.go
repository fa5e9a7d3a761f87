package adversary

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/stall"
)

// TestServedDiskFallsSilent shows that a served disk answers no request from a selected one on, and later all.
func TestServedDiskFallsSilent(t *testing.T) {
	end, err := stall.Alone()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	dir := t.TempDir()
	d := &disk{kind: servedKind, dir: filepath.Join(dir, "disk"), image: filepath.Join(dir, "0")}
	w := &world{setup: overServedPool(), disks: []*disk{{}, d}, tally: NewTally()}
	if err := d.make(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.endServers(); err != nil {
			t.Error(err)
		}
	})
	var answers atomic.Int64
	var group sync.WaitGroup
	group.Go(func() {
		for t.Context().Err() == nil { // until just before the cleanups
			if _, err := os.Lstat(d.dir); err != nil {
				t.Error(err)
			}
			answers.Add(1)
		}
	})
	t.Cleanup(group.Wait)
	again, err := w.silent(Fault{On: 2})
	t.Cleanup(func() { // or nothing above ends
		if err := w.resume(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if stopped, err := d.server.Stopped(); err != nil || !stopped || w.silence.disk != d || !w.silence.ended.IsZero() {
		t.Errorf("it has stopped: %t (%v), and the silence is %+v", stopped, err, w.silence)
	}
	if how := counted(w.tally.Faults); how != "silent at GETATTR 1" && how != "silent at once 1" {
		t.Errorf("how it fell silent is counted as %q", how)
	}
	before := answers.Load()
	if err := again(); err != nil || w.silence.ended.IsZero() {
		t.Errorf("it goes on: %v, and the silence has ended at %v", err, w.silence.ended)
	}
	for deadline := time.Now().Add(patient().calls); answers.Load() == before; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not answer any more")
		}
	}
}

// TestServedShareIsOfAnotherServer shows that the server that falls silent has only one of the two shares.
func TestServedShareIsOfAnotherServer(t *testing.T) {
	s := overServedShare()
	config, seen := s.Config(&world{setup: s}, Proper), map[string]bool{}
	for _, class := range s.Classes {
		server, share := class.Parameters["server"], class.Parameters["share"]
		if seen[server] || !strings.Contains(config, fmt.Sprintf("server: %s, share: %s}", server, share)) {
			t.Errorf("%s of %s has the server of another, or is not configured:\n%s", share, server, config)
		}
		seen[server] = true
	}
}
