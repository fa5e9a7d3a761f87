package stuck

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestThread reads the test's own thread, and one that there is not.
func TestThread(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if name, state := thread(fmt.Sprintf("/proc/self/task/%d", unix.Gettid())); name != "stuck.test" || state != "R" {
		t.Errorf("got %q in state %q, want stuck.test in state R", name, state)
	}
	if name, state := thread(filepath.Join(t.TempDir(), "1")); name != "" || state != "" {
		t.Errorf("got %q in state %q, want nothing", name, state)
	}
}

// TestReport wants messages of the kernel, or the reason why they cannot be read.
func TestReport(t *testing.T) {
	if text := Report(); !strings.Contains(text, "kernel: ") {
		t.Errorf("got %q, want messages of the kernel", text)
	}
}
