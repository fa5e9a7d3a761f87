package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// asProgram in the environment turns the test's program into the driver.
const asProgram = "STOWAGE_TEST_AS_PROGRAM"

// TestSecondSignal delays the process by a call after the first signal: an operator in a hurry sends another.
func TestSecondSignal(t *testing.T) {
	dir, err := os.MkdirTemp("", "signal-") //nolint:usetesting // t.TempDir is too long for a socket.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := "unix://" + filepath.Join(dir, "csi.sock")
	driver := exec.CommandContext(t.Context(), "/proc/self/exe", "standalone", "--backend=memory", "--endpoint="+socket,
		"--data-dir="+filepath.Join(dir, "data"), "--shutdown-grace=1h")
	driver.Env, driver.Stderr = append(os.Environ(), asProgram+"=1"), os.Stderr
	if err := driver.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- driver.Wait() }()

	conn, err := grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // The driver has ended.
	if _, err := csi.NewIdentityClient(conn).Probe(t.Context(), &csi.ProbeRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	// The server waits for a message that never comes.
	silent := &grpc.StreamDesc{ClientStreams: true}
	if _, err := conn.NewStream(t.Context(), silent, csi.Identity_Probe_FullMethodName); err != nil {
		t.Fatal(err)
	}
	// Two signals at once may be one for the process.
	for tick, late := time.Tick(50*time.Millisecond), time.After(2*time.Minute); ; {
		if err := driver.Process.Signal(syscall.SIGTERM); err != nil {
			t.Log(err)
		}
		select {
		case <-tick:
		case <-late:
			t.Fatal("the driver is still there")
		case err := <-ended:
			status, ok := driver.ProcessState.Sys().(syscall.WaitStatus)
			if !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
				t.Errorf("the driver ended with %v; want the second signal, and not the end of what holds it", err)
			}
			return
		}
	}
}
