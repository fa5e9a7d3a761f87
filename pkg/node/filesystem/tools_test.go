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
func impatient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// Whoever formats, checks, grows or repairs waits for its turn as long as its request lasts, says how many
// are before it, and has touched nothing.
func TestTurns(t *testing.T) {
	needTools(t, "ext4")
	f := image(t, 16*mib)
	d := attach(t, f)
	tools := NewTools(1)
	others, err := tools.take(t.Context(), "/dev/other")
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
	_, err = tools.Format(impatient(t), request)
	waits("Format", err)
	if sum(t, f) != blank {
		t.Error("the device was written to before its turn")
	}
	others.release()
	if _, err := tools.Format(t.Context(), request); err != nil {
		t.Fatalf("with the turn: %v", err)
	}
	if !tool(t, "debugfs", "-w", "-R", "set_super_value state 0", d.Path) {
		t.Skip("SKIPPED: debugfs is not installed")
	}
	others, _ = tools.take(t.Context(), "/dev/other")
	waits("Check", tools.Check(impatient(t), d.Path, "ext4", intentBase(t)))
	waits("GrowOffline", tools.GrowOffline(impatient(t), d.Path, "ext4", intentBase(t)))
	base := intentBase(t)
	r, err := repairOf(base, d.File)
	if err == nil {
		err = r.record(repairGrow, d.File)
	}
	if err != nil {
		t.Fatal(err)
	}
	waits("Recover", tools.Recover(impatient(t), d.Path, base))
	others.release()
	for name, err := range map[string]error{
		"Recover":     tools.Recover(t.Context(), d.Path, base),
		"Check":       tools.Check(t.Context(), d.Path, "ext4", base),
		"GrowOffline": tools.GrowOffline(t.Context(), d.Path, "ext4", base),
	} {
		if err != nil {
			t.Errorf("%s with the turn: %v", name, err)
		}
	}
	wantAllFree(t, tools)
}

func wantAllFree(t *testing.T, tools *Tools) {
	t.Helper()
	if taken, work := len(tools.free), tools.work.Load(); taken != 0 || work != 0 {
		t.Errorf("%d turns are taken and %d count as at work after the end", taken, work)
	}
}

// A tool that outlives its request has the turn until it ends, and one that was killed gives it back.
func TestTurnOfAToolThatOutlivesItsRequest(t *testing.T) {
	tools := NewTools(1)
	for name, mustEnd := range map[string]bool{"killed": false, "outlives": true} {
		t.Run(name, func(t *testing.T) {
			d := attach(t, image(t, mib))
			locked, err := lockDevice(d.Path)
			if err != nil {
				t.Fatal(err)
			}
			if locked.turn, err = tools.take(t.Context(), d.Path); err != nil {
				t.Fatal(err)
			}
			_, err = run(impatient(t), command{tool: "sleep", args: []string{"3"}, device: locked, mustEnd: mustEnd})
			locked.turn.release()
			locked.unlock()
			if !mustEnd {
				wantKind(t, err, backends.Unavailable)
				wantAllFree(t, tools)
				return
			}
			wantKind(t, err, backends.Busy)
			_, err = tools.take(impatient(t), "/dev/next")
			wantKind(t, err, backends.Unavailable)
			waitForLock(t, d.Path)
			next, err := tools.take(t.Context(), "/dev/next")
			if err != nil {
				t.Fatal(err)
			}
			next.release()
			wantAllFree(t, tools)
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
