package filesystem

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// impatient is a context that is over in a moment.
func impatient(t *testing.T, turns *Turns) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(WithTurns(t.Context(), turns), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// Whoever formats, checks, grows or repairs waits for its turn as long as its request lasts, says how many
// are before it, and has touched nothing.
func TestTurns(t *testing.T) {
	needTools(t, "ext4")
	f := image(t, 16*mib)
	d := attach(t, f)
	turns := NewTurns(1)
	others, err := takeTurn(WithTurns(t.Context(), turns), "/dev/other")
	if err != nil {
		t.Fatal(err)
	}
	blank := sum(t, f)
	request := request(d, "ext4")
	waits := func(name string, err error) {
		t.Helper()
		wantKind(t, err, backends.Unavailable)
		if err == nil || !strings.Contains(err.Error(), "1 others are being formatted or checked") {
			t.Errorf("%s while another has the turn: %v", name, err)
		}
	}
	_, err = Format(impatient(t, turns), request)
	waits("Format", err)
	if sum(t, f) != blank {
		t.Error("the device was written to before its turn")
	}
	others.release()
	if _, err := Format(patient(t, turns), request); err != nil {
		t.Fatalf("with the turn: %v", err)
	}
	if !tool(t, "debugfs", "-w", "-R", "set_super_value state 0", d.Path) {
		t.Skip("SKIPPED: debugfs is not installed")
	}
	others, _ = takeTurn(WithTurns(t.Context(), turns), "/dev/other")
	waits("Check", Check(impatient(t, turns), d.Path, "ext4", intentBase(t)))
	waits("GrowOffline", GrowOffline(impatient(t, turns), d.Path, "ext4", intentBase(t)))
	base := intentBase(t)
	r, err := repairOf(base, d.File)
	if err == nil {
		err = r.record(repairGrow, d.File)
	}
	if err != nil {
		t.Fatal(err)
	}
	waits("Recover", Recover(impatient(t, turns), d.Path, base))
	others.release()
	for name, err := range map[string]error{
		"Recover":     Recover(patient(t, turns), d.Path, base),
		"Check":       Check(patient(t, turns), d.Path, "ext4", base),
		"GrowOffline": GrowOffline(patient(t, turns), d.Path, "ext4", base),
	} {
		if err != nil {
			t.Errorf("%s with the turn: %v", name, err)
		}
	}
	wantAllFree(t, turns)
}

// patient is a context that lasts.
func patient(t *testing.T, turns *Turns) context.Context {
	t.Helper()
	return WithTurns(t.Context(), turns)
}

func wantAllFree(t *testing.T, turns *Turns) {
	t.Helper()
	if taken, work := len(turns.free), turns.work.Load(); taken != 0 || work != 0 {
		t.Errorf("%d turns are taken and %d count as at work after the end", taken, work)
	}
}

// A tool that outlives its request has the turn until it ends, and one that was killed gives it back.
func TestTurnOfAToolThatOutlivesItsRequest(t *testing.T) {
	turns := NewTurns(1)
	for name, mustEnd := range map[string]bool{"killed": false, "outlives": true} {
		t.Run(name, func(t *testing.T) {
			d := attach(t, image(t, mib))
			locked, err := lockDevice(d.Path)
			if err != nil {
				t.Fatal(err)
			}
			if locked.turn, err = takeTurn(patient(t, turns), d.Path); err != nil {
				t.Fatal(err)
			}
			_, err = run(impatient(t, turns), command{tool: "sleep", args: []string{"3"}, device: locked, mustEnd: mustEnd})
			locked.turn.release()
			locked.unlock()
			if !mustEnd {
				wantKind(t, err, backends.Unavailable)
				wantAllFree(t, turns)
				return
			}
			wantKind(t, err, backends.Busy)
			_, err = takeTurn(impatient(t, turns), "/dev/next")
			wantKind(t, err, backends.Unavailable)
			waitForLock(t, d.Path)
			next, err := takeTurn(patient(t, turns), "/dev/next")
			if err != nil {
				t.Fatal(err)
			}
			next.release()
			wantAllFree(t, turns)
		})
	}
}

// waitForLock returns once the tool that inherited the device's lock has ended.
func waitForLock(t *testing.T, path string) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
		t.Error(err)
	}
}
