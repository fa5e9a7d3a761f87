package smoke

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/vm/internal/boot"
	"github.com/stowage-csi/stowage/tests/vm/internal/workspace"
)

// A killed run ends its guest too, and the next run removes its folder.
func TestKilledRun(t *testing.T) {
	t.Parallel()
	must(t, boot.Check())
	temp := t.TempDir()
	program := filepath.Join(t.TempDir(), "run")
	must(t, tree.Build(t.Context(), "./tests/vm/run", program))
	cmd := exec.CommandContext(t.Context(), program, "-tree", string(tree), "./pkg/keylock")
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	up := false
	for lines := bufio.NewScanner(stderr); !up && lines.Scan(); {
		up = strings.Contains(lines.Text(), "a guest is up")
		t.Log(lines.Text())
	}
	if !up {
		t.Fatalf("no guest came up: %v", cmd.Wait())
	}
	records, err := filepath.Glob(filepath.Join(temp, "*", "processes", "*"))
	if err != nil || len(records) < 2 {
		t.Fatalf("the run has recorded the processes %v (%v), want QEMU and virtiofsd", records, err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // It was killed.
	for _, record := range records {
		until(t, func() bool {
			_, err := os.Stat(filepath.Join("/proc", filepath.Base(record)))
			return errors.Is(err, fs.ErrNotExist)
		}, "the end of process "+filepath.Base(record))
	}
	next, err := workspace.New(temp)
	must(t, err)
	must(t, next.Remove())
	if left, err := filepath.Glob(filepath.Join(temp, "stowage-vm-*")); err != nil || len(left) > 0 {
		t.Errorf("folders are left: %v (%v)", left, err)
	}
}

// until waits until so returns true.
func until(t *testing.T, so func() bool, what string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !so() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
