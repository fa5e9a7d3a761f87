package mountns_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/stall"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// role, in the environment, selects the role of this program when a test starts it: "attach" leaves a loop device and
// waits, "end" does nothing, and "hang" is a test, isolated.
const role = "STOWAGE_MOUNTNS_ROLE"

func TestMain(m *testing.M) {
	stall.Main()
	switch os.Getenv(role) {
	case "attach":
		os.Exit(mountns.Isolate(attach))
	case "end":
		os.Exit(mountns.Isolate(func() int { return 0 }))
	case "hang":
		os.Exit(mountns.Isolate(m.Run))
	}
	os.Exit(m.Run())
}

// attach makes a loop device hold a temporary file, prints its process and the device, and waits to be killed.
func attach() int {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	image := filepath.Join(dir, "image")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		panic(err)
	}
	device, err := exec.CommandContext(context.Background(), "losetup", "--find", "--show", image).Output()
	if err != nil {
		panic(err)
	}
	fmt.Println(os.Getpid(), strings.TrimSpace(string(device)))
	fmt.Fprintln(os.Stderr, unix.Pause()) // only returns for a signal that is handled
	return 1
}

// start starts this program in a role; a role that is a test runs only that test.
func start(t *testing.T, name, temporary string, input io.Reader) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^"+t.Name()+"$")
	command.Env = append(os.Environ(), role+"="+name, "TMPDIR="+temporary)
	command.Stdin, command.Stderr = input, os.Stderr
	said, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command, bufio.NewReader(said)
}

// shortDir returns a directory with a short name: a loop device keeps only 63 bytes of its file's name (loop(4)).
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "") //nolint:usetesting // The test's name makes a directory of its own too long.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // If it is not empty, the test has failed.
	return dir
}

// holds reports whether a loop device holds a file of a directory.
func holds(device, dir string) bool {
	loop, err := os.Open(device)
	if err != nil {
		return false
	}
	defer func() { _ = loop.Close() }() // It was only read.
	info, err := unix.IoctlLoopGetStatus64(int(loop.Fd()))
	return err == nil && strings.HasPrefix(unix.ByteSliceToString(info.File_name[:]), dir+"/")
}

// A program that is killed leaves no loop device: the process that waits for it detaches it, or, if that was killed
// too, the next program.
func TestKilledProgramsLeaveNoLoopDevices(t *testing.T) {
	testfs.NeedRoot(t)
	program := func(_, inner int) int { return inner }
	starter := func(outer, _ int) int { return outer }
	for name, killed := range map[string]struct {
		victim func(outer, inner int) int
		memory string
	}{
		"the program":                                       {program, ""},
		"the process that started it":                       {starter, ""},
		"the program, with its files in memory":             {program, "1"},
		"the process that started it, with files in memory": {starter, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			temporary := shortDir(t)
			t.Setenv("STOWAGE_TESTS_IN_MEMORY", killed.memory)
			outer, said := start(t, "attach", temporary, nil)
			var inner int
			var device string
			if _, err := fmt.Fscan(said, &inner, &device); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if holds(device, temporary) { // which has failed the test
					_ = exec.CommandContext(context.WithoutCancel(t.Context()), "losetup", "--detach", device).Run()
				}
			})
			if !holds(device, temporary) {
				t.Fatalf("%s does not hold a temporary file", device)
			}
			if err := unix.Kill(killed.victim(outer.Process.Pid, inner), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, said) // until both have ended
			if err := outer.Wait(); err == nil {
				t.Error("a program that was killed has ended well")
			}
			next, _ := start(t, "end", temporary, nil)
			if err := next.Wait(); err != nil {
				t.Errorf("the next program: %v", err)
			}
			for deadline := time.Now().Add(2 * time.Minute); holds(device, temporary); <-time.After(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%s is left", device)
				}
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("temporary files are left: %v, %v", left, err)
			}
		})
	}
}

// hang makes a loop device hold a file of a server that does not answer, prints the device, and waits for the end of
// its input.
func hang(t *testing.T) {
	server := stall.Serve(t)
	image := filepath.Join(server.Dir, "image")
	if err := os.WriteFile(image, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	device := testfs.Attach(t, image)
	server.Stop(t)
	t.Cleanup(func() { server.Continue(t) }) // or the device is not detached
	fmt.Println(device)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// TestNoServerIsWaitedFor runs a program while a loop device holds a file of a server that does not answer, which only
// another mount namespace has.
func TestNoServerIsWaitedFor(t *testing.T) {
	if os.Getenv(role) == "hang" {
		hang(t)
		return
	}
	testfs.NeedRoot(t)
	input, goOn := io.Pipe()
	hanging, said := start(t, "hang", shortDir(t), input)
	defer func() { // A cleanup would come after the end of the test's context, which kills the program.
		_ = goOn.Close() // It is in memory.
		if err := hanging.Wait(); err != nil {
			t.Errorf("the program with the server: %v", err)
		}
	}()
	var device string
	if _, err := fmt.Fscan(said, &device); err != nil {
		t.Fatal(err)
	}
	other, _ := start(t, "end", shortDir(t), nil)
	ended := make(chan error, 1)
	go func() { ended <- other.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Errorf("it waits for the server of what %s holds", device)
	}
}
