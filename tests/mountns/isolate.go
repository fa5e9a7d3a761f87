package mountns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// inMemory in the environment makes the isolated program keep its temporary files in memory.
const inMemory = "STOWAGE_TESTS_IN_MEMORY"

// Isolate runs this program again in its own mount namespace and returns its exit code; there, it calls run and returns
// its result. It is for TestMain.
//
// A concurrent test that copies the mount namespace would also copy this test's mounts, and so keep volumes in use that
// were unmounted here. For the same reason the new namespace unmounts the mounts of others. It ends with the process,
// and so do all mounts in it. Loop devices do not: those of its temporary files are detached when the program ends, or
// before the next one runs if this one is killed.
func Isolate(run func() int) int { return isolate(run, false) }

// IsolateInMemory isolates as Isolate does, with temporary files on a separate filesystem in memory. There, run waits
// for no disk, and a sync of a whole filesystem waits for no other program's files. It is for tests that create the
// filesystems that they depend on themselves. A given TMPDIR selects the filesystem to test on, and is kept.
//
// These stay on the disk: pkg/filecopy, which checks extents, because a filesystem in memory reports none; tests that
// run a driver as a separate process beside others that fill or measure disks, such as tests/adversary, bench, crash,
// orchestrator and powerloss; tests/nfs and tests/vm, where a kernel serves the files; and tests that write little.
func IsolateInMemory(run func() int) int { return isolate(run, true) }

func isolate(run func() int, memory bool) int {
	// A worker of a fuzz test is a child of a process that is in the namespace already.
	if os.Geteuid() != 0 || slices.Contains(os.Args, "-test.fuzzworker") {
		return run()
	}
	isolated, err := isolated()
	switch {
	case err == nil && isolated:
		if err = prepare(); err == nil {
			return run()
		}
	case err == nil:
		var code int
		if code, err = runIsolated(memory && os.Getenv("TMPDIR") == ""); err == nil {
			return code
		}
	}
	fmt.Fprintln(os.Stderr, "no mount namespace of its own:", err)
	return 1
}

// isolated reports whether this process has another mount namespace than its parent.
func isolated() (bool, error) {
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return false, err
	}
	parents, err := os.Readlink("/proc/" + strconv.Itoa(os.Getppid()) + "/ns/mnt")
	return own != parents, err
}

func runIsolated(memory bool) (int, error) {
	scratch, err := takeScratch()
	if err != nil {
		return 0, err
	}
	defer scratch.leave()
	// The child is killed when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "TMPDIR="+scratch.dir)
	if memory {
		cmd.Env = append(cmd.Env, inMemory+"=1")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// prepare prepares the new namespace.
func prepare() error {
	if err := letGoOfOthers(); err != nil || os.Getenv(inMemory) == "" {
		return err
	}
	if err := unix.Mount("stowage-tests", os.TempDir(), "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("keep temporary files in memory: %w", err)
	}
	return nil
}

// letGoOfOthers unmounts, in this namespace only, the mounts of loop devices and those below the directory for
// temporary files.
func letGoOfOthers() error {
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return err
	}
	temporary := strings.TrimSuffix(filepath.Dir(os.TempDir()), "/") + "/" // of all runs
	for _, m := range slices.Backward(mounts) {
		if !strings.HasPrefix(m.Source, "/dev/loop") && !strings.HasPrefix(m.Mountpoint, temporary) {
			continue
		}
		err := unix.Unmount(m.Mountpoint, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		// It may have gone with the mount below it.
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("let go of %s: %w", m.Mountpoint, err)
		}
	}
	return nil
}
