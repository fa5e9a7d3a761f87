package filesystem

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// untilItWaits does work on a device, with a time that ends once it waits for its turn.
func untilItWaits(t *testing.T, tools *Tools, path string, work func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	for !strings.Contains(tools.Progress(path), "it waits for its turn") && len(done) == 0 {
		<-time.After(time.Millisecond)
	}
	cancel()
	return <-done
}

// A call that formats, checks, grows or repairs waits for its turn as long as its request lasts. Its error says how
// many are before it, and it has changed nothing.
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
	waits := func(name string, work func(context.Context) error) {
		t.Helper()
		err := untilItWaits(t, tools, d.Path, work)
		wantKind(t, err, backends.Unavailable)
		if err == nil || !strings.Contains(err.Error(), "1 others are being formatted or checked") {
			t.Errorf("%s while another has the turn: %v", name, err)
		}
	}
	waits("Format", func(ctx context.Context) error {
		_, err := tools.Format(ctx, request)
		return err
	})
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
	waits("Check", func(ctx context.Context) error { return tools.Check(ctx, d.Path, "ext4", intentBase(t)) })
	waits("GrowOffline", func(ctx context.Context) error { return tools.GrowOffline(ctx, d.Path, "ext4", intentBase(t)) })
	base := intentBase(t)
	r, err := repairOf(base, d.File)
	if err == nil {
		err = r.record(repairGrow, d.File)
	}
	if err != nil {
		t.Fatal(err)
	}
	waits("Recover", func(ctx context.Context) error { return tools.Recover(ctx, d.Path, base) })
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
	if taken, work, idle := len(tools.free), tools.work.Load(), tools.idle.Load(); taken != 0 || work != 0 || idle != 0 ||
		len(tools.turns) != 0 {
		t.Errorf("%d turns are taken, and %d count as at work, %d as idle and %d as known after the end", taken, work, idle,
			len(tools.turns))
	}
}

// occupied returns a device with a turn, and a tool that runs in it until end is called. The tool has begun.
func occupied(t *testing.T, tools *Tools, script string) (path string, end func()) {
	t.Helper()
	d := attach(t, image(t, mib))
	locked, err := lockDevice(t.Context(), d.Path)
	if err != nil {
		t.Fatal(err)
	}
	if locked.turn, err = tools.take(t.Context(), d.Path); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := pipe(t), make(chan struct{})
	go func() {
		defer close(ended)
		defer locked.unlock()
		defer locked.turn.release()
		_, _ = run(ctx, command{tool: "sh", args: []string{"-c", "echo > " + begun + "; " + script}, device: locked})
	}()
	end = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(end)
	heard(t, begun)
	return d.Path, end
}

// wantTurns waits until so many turns are taken, and so many holders have yielded theirs. A tool that is slow to begin
// on a busy machine yields its turn, and takes it back once it works.
func wantTurns(t *testing.T, tools *Tools, taken int, idle int64) {
	t.Helper()
	for deadline := time.Now().Add(enough); ; <-time.After(time.Millisecond) {
		if len(tools.free) == taken && tools.idle.Load() == idle {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d turns are taken and %d yielded, want %d and %d", len(tools.free), tools.idle.Load(), taken, idle)
		}
	}
}

// wantNoTurn waits for a turn, until it is known that the call waits, and returns the error.
func wantNoTurn(t *testing.T, tools *Tools) error {
	t.Helper()
	const next = "/dev/next"
	err := untilItWaits(t, tools, next, func(ctx context.Context) error {
		n, err := tools.take(ctx, next)
		n.release()
		return err
	})
	wantKind(t, err, backends.Unavailable)
	return err
}

// quick returns Tools that lose patience soon.
func quick(most int) *Tools {
	tools := NewTools(most)
	tools.patience = time.Second
	return tools
}

// A tool that hangs on one device yields its turn to other devices, and does not give it back again at its end. A tool
// that works keeps its turn, whether it computes or reads and writes.
func TestTurnOfWhatHangs(t *testing.T) {
	for name, test := range map[string]struct {
		script   string
		hangs    bool
		patience time.Duration
	}{
		"hangs": {"sleep 3600", true, time.Second},
		// Longer than a busy machine keeps a process from any work.
		"computes": {"while :; do :; done", false, 5 * time.Second},
		"writes":   {"while :; do echo; done > /dev/null", false, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			tools := quick(1)
			tools.patience = test.patience
			path, end := occupied(t, tools, test.script)
			limit := enough
			if !test.hangs { // longer than patience, to see that it is not lost
				wantTurns(t, tools, 1, 0)
				limit = 2 * tools.patience
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			next, err := tools.take(ctx, "/dev/next")
			if hangs := err == nil; hangs != test.hangs {
				t.Errorf("the turn of what hangs (%t) was given to another: %t", test.hangs, hangs)
			}
			if progress := tools.Progress(path); !strings.Contains(progress, "sh, process ") {
				t.Errorf("the progress is %q", progress)
			}
			next.release()
			end()
			wantAllFree(t, tools)
		})
	}
}

// Two tools that hang do not keep a third device from being formatted, and a caller that waits is told of them.
func TestHungToolsDoNotStopOthers(t *testing.T) {
	needTools(t, "ext4")
	tools := quick(2)
	for range 2 {
		occupied(t, tools, "sleep 3600")
	}
	if _, err := tools.Format(t.Context(), request(attach(t, image(t, 16*mib)), "ext4")); err != nil {
		t.Fatal(err)
	}
	wantTurns(t, tools, 0, 2)
	tools.patience = 5 * time.Second // Longer than a busy machine keeps the next two from any work.
	for range 2 {
		occupied(t, tools, "while :; do :; done")
	}
	wantTurns(t, tools, 2, 2)
	err := wantNoTurn(t, tools)
	if err == nil || !strings.Contains(err.Error(), "2 others are being formatted or checked") ||
		!strings.Contains(err.Error(), "besides 2 whose devices do not answer") {
		t.Errorf("who waits is told %v", err)
	}
}

// A tool that continues after it hung counts again.
func TestTurnIsTakenBack(t *testing.T) {
	tools := quick(1)
	goOn := pipe(t)
	occupied(t, tools, "read line < "+goOn+"; while :; do :; done")
	next, err := tools.take(t.Context(), "/dev/next")
	if err != nil {
		t.Fatal(err)
	}
	next.release()
	if err := os.WriteFile(goOn, []byte("go on\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantTurns(t, tools, 1, 0)
	_ = wantNoTurn(t, tools)
}

// The number of tools that may hang is bounded: each keeps its memory.
func TestHungToolsAreBounded(t *testing.T) {
	tools := NewTools(1)
	given := 0
	for range mostIdle + 3 {
		tools.free <- struct{}{}
		if !tools.giveUp() {
			break
		}
		given++
	}
	if given != mostIdle {
		t.Errorf("%d turns were given to others, want %d", given, mostIdle)
	}
}
