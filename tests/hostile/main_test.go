package hostile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

const inside = "STOWAGE_TEST_MOUNT_NAMESPACE"

// TestMain runs the tests in a mount namespace of their own: they ask for mounts on / and /etc, and
// should one ever succeed, this machine must not notice.
func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" {
		os.Exit(m.Run())
	}
	command := exec.CommandContext(context.Background(), "/proc/self/exe", os.Args[1:]...)
	command.Env = append(os.Environ(), inside+"=1")
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "these tests need root, for a mount namespace:", err)
		os.Exit(1)
	}
}
