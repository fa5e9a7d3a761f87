package main

import (
	"bytes"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/tests/stall"
)

// endedAt runs the program, sends it SIGTERM while its n-th request to the server hangs, and returns its exit code and
// its messages.
func endedAt(t *testing.T, server *stall.Server, request stall.Request, n int, args ...string) (code int, said string) {
	t.Helper()
	server.StopAt(t, request, n)
	var output bytes.Buffer
	program := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	program.Env, program.Stderr = append(os.Environ(), asProgram+"=1"), &output
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	for tick, late := time.Tick(10*time.Millisecond), time.After(2*time.Minute); !server.Stopped(t); {
		select {
		case <-tick:
		case <-late:
			t.Fatalf("%q sends no %d. %s", args, n, request)
		}
	}
	if err := program.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	server.Continue(t)
	if err := program.Wait(); err != nil {
		t.Log(err)
	}
	return program.ProcessState.ExitCode(), output.String()
}
