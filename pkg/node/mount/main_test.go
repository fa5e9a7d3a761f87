package mount

import (
	"context"
	"errors"
	"log"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// TestMain runs the tests in a mount namespace of their own, so that no mount outlives them.
func TestMain(m *testing.M) {
	worker := slices.Contains(os.Args, "-test.fuzzworker") // of a process that is in the namespace already
	if os.Geteuid() != 0 || worker || namespace("self") != namespace(strconv.Itoa(os.Getppid())) {
		os.Exit(m.Run())
	}
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", os.Args[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		log.Fatal(err)
	}
}

func namespace(process string) string {
	name, err := os.Readlink("/proc/" + process + "/ns/mnt")
	if err != nil {
		log.Fatal(err)
	}
	return name
}
