package smoke

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/vm/internal/boot"
	"github.com/stowage-csi/stowage/tests/vm/internal/qemu"
	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
	"github.com/stowage-csi/stowage/tests/vm/internal/workspace"
)

// tree is the root of the source tree, as tests of this package see it.
const tree = boot.Tree("../../..")

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	// sleepLimit is the time after which a program that sleeps is killed.
	sleepLimit = 10 * time.Second
	// patience is the limit for everything else, with several guests on few and emulated processors.
	patience = 2 * time.Minute
)

// limitOf returns the time after which a program is killed.
func limitOf(deed string) time.Duration {
	if deed == "sleep" {
		return sleepLimit
	}
	return patience
}

// prepare prepares a guest that runs the culprit with each of the arguments, each until its limit.
func prepare(t *testing.T, limit func(deed string) time.Duration, deeds ...string) qemu.Config {
	t.Helper()
	t.Parallel() // They mostly wait.
	must(t, boot.Check())
	w, err := workspace.New(t.TempDir())
	must(t, err)
	t.Cleanup(func() {
		if err := w.Remove(); err != nil {
			t.Error(err)
		}
	})
	c, err := boot.Prepare(t.Context(), tree, w, os.Stderr)
	must(t, err)
	must(t, tree.Build(t.Context(), "./tests/vm/smoke/culprit", filepath.Join(absolute(t, c.Share), "culprit")))
	var job wire.Job
	for _, deed := range deeds {
		job.Programs = append(job.Programs, wire.Program{Name: deed, Path: "culprit", Dir: ".", Args: []string{deed},
			Temp: "/tmp", Limit: limit(deed)})
	}
	must(t, job.Write(c.Share))
	return c
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	must(t, err)
	return path
}

// said contains the programs' output and exit codes.
type said struct {
	output map[string]string
	codes  map[string]int
}

// run runs a guest, and calls also with each frame.
func run(ctx context.Context, c qemu.Config, also func(wire.Frame)) (said, error) {
	s := said{map[string]string{}, map[string]int{}}
	err := boot.Run(ctx, c, func(qemu.Accel) {}, func(f wire.Frame) error {
		also(f)
		switch f.Kind {
		case wire.Output:
			s.output[f.Program] += f.Text
		case wire.End:
			s.codes[f.Program] = f.Code
		default:
		}
		return nil
	})
	return s, err
}

// Programs end in all ways, and each result is reported as it was. A failed program does not keep the next from
// running.
func TestPrograms(t *testing.T) {
	s, err := run(t.Context(), prepare(t, limitOf, "exit", "kill", "leave", "sleep", "talk"), func(wire.Frame) {})
	must(t, err)
	for deed, code := range map[string]int{"exit": 1, "kill": 128 + 9, "leave": 0, "sleep": 128 + 9, "talk": 0} {
		if got, ended := s.codes[deed]; !ended || got != code {
			t.Errorf("%s: ended %v with %d, want %d", deed, ended, got, code)
		}
	}
	if want := "culprit: this is what was asked for\n"; s.output["exit"] != want {
		t.Errorf("exit: the output is %q, want %q", s.output["exit"], want)
	}
	if !strings.Contains(s.output["leave"], "left a process behind") {
		t.Errorf("leave: the output is %q", s.output["leave"])
	}
	var want strings.Builder
	for line := range 5000 {
		fmt.Fprintf(&want, "%05d \"\\\t\r\x16\x1b é %s\n", line, strings.Repeat("x", 20))
	}
	if s.output["talk"] != want.String() {
		t.Errorf("talk: of %d bytes %d came, or others", want.Len(), len(s.output["talk"]))
	}
}

// A kernel panic is an error that shows the kernel's message.
func TestPanic(t *testing.T) {
	_, err := run(t.Context(), prepare(t, limitOf, "panic", "exit"), func(wire.Frame) {})
	if !errors.Is(err, qemu.ErrDied) || !strings.Contains(err.Error(), "Kernel panic") {
		t.Errorf("got %v, want ErrDied and the kernel's words", err)
	}
}

// A guest that falls silent is ended.
func TestFreeze(t *testing.T) {
	c := prepare(t, limitOf, "freeze", "sleep")
	c.Silence = 3 * wire.Pulse
	_, err := run(t.Context(), c, func(wire.Frame) {})
	if !errors.Is(err, qemu.ErrHangs) {
		t.Errorf("got %v, want ErrHangs", err)
	}
}

// A guest without its disk does not boot, and the error names the disk.
func TestNotUp(t *testing.T) {
	c := prepare(t, limitOf)
	c.Disk = c.Kernel
	_, err := run(t.Context(), c, func(wire.Frame) {})
	if !errors.Is(err, qemu.ErrNotUp) || !strings.Contains(err.Error(), "/dev/nvme0n1") {
		t.Errorf("got %v, want ErrNotUp and the disk", err)
	}
}

// Cancelling a run ends the guest, without waiting for a program that sleeps for long.
func TestCancel(t *testing.T) {
	c := prepare(t, func(string) time.Duration { return 10 * patience }, "sleep")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var begun time.Time
	_, err := run(ctx, c, func(f wire.Frame) {
		if f.Kind == wire.Begin {
			begun = time.Now()
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	if took := time.Since(begun); took > patience {
		t.Errorf("it took %v", took)
	}
	left, err := os.ReadDir(c.Workspace.Path("processes"))
	if err != nil || len(left) > 0 {
		t.Errorf("processes are left: %v (%v)", left, err)
	}
}
