package stall

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Server is a filesystem that can be stalled.
type Server struct {
	Dir  string // where it is mounted
	Real string // what it serves

	cmd     *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Scanner
}

// Serve starts a server until the end of the test. It must be called before anything that uses it is set up, so
// that it is killed after that was taken down. There is one at a time on a machine: all tests see the same loop
// devices, and one that hangs has to be asked by whoever looks for his own.
func Serve(t testing.TB) *Server {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: mounting needs root")
	}
	alone(t)
	s := &Server{Dir: t.TempDir(), Real: t.TempDir()}
	started, stop, ended := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // The server is killed when this thread ends, which waits for nothing in the kernel.
		defer runtime.UnlockOSThread()
		err := s.start()
		started <- err
		if err == nil {
			<-stop
			_ = s.cmd.Process.Kill() // it may have ended
			_ = s.cmd.Wait()         // by a signal
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(stop)
		<-ended
		if err := unix.Unmount(s.Dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			t.Errorf("unmounting what was served: %v", err)
		}
	})
	return s
}

// alone waits until no other test on the machine has a server or keeps servers away, and keeps both waiting until
// the end of this one.
func alone(t testing.TB) {
	t.Helper()
	t.Cleanup(locked(t, unix.LOCK_EX))
}

// Apart keeps servers off the machine until the end of the test: what it does with loop devices asks all of them,
// also one whose file another mount namespace has on a server that hangs. Many tests may do so at a time, and one
// more than once. A test that has a server itself is alone already and must not call it.
func Apart(t testing.TB) {
	t.Helper()
	t.Cleanup(locked(t, unix.LOCK_SH))
}

// WithoutServers is Apart for the time of do, which must be short.
func WithoutServers(t testing.TB, do func()) {
	t.Helper()
	defer locked(t, unix.LOCK_SH)()
	do()
}

// lockPatience bounds the wait for the tests of other packages, which hold the lock for one test each, and leaves
// the package half of its time (the Makefile's -timeout). Only what hangs holds it for so long.
const lockPatience = 10 * time.Minute

// locked takes the lock of servers in one way or the other, and returns what gives it back. The lock goes with the
// process that has it, however that ends; what the process starts does not inherit it.
func locked(t testing.TB, how int) (unlock func()) {
	t.Helper()
	lock, err := os.Open("/dev/fuse") // which every server needs, and nobody else locks
	if errors.Is(err, fs.ErrNotExist) && how == unix.LOCK_SH {
		return func() {} // without it there are no servers
	}
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan error, 1)
	go func() { taken <- flock(lock, how) }()
	select {
	case err = <-taken:
	case <-time.After(lockPatience):
		t.Fatalf("a test on this machine has %s locked for %s: /proc/locks says which process", lock.Name(), lockPatience)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = unix.Flock(int(lock.Fd()), unix.LOCK_UN) // a process that is being started has a copy for an instant
		_ = lock.Close()
	}
}

// flock waits for the lock of a file.
func flock(file *os.File, how int) error {
	for {
		if err := unix.Flock(int(file.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (s *Server) start() (err error) {
	s.cmd = exec.CommandContext(context.Background(), "/proc/self/exe", serveWord, s.Real, s.Dir)
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.orders, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	answers, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.answers = bufio.NewScanner(answers)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	return s.hear("serving")
}

func (s *Server) hear(word string) error {
	if !s.answers.Scan() || s.answers.Text() != word {
		return fmt.Errorf("the server says %q, want %q (%w)", s.answers.Text(), word, s.answers.Err())
	}
	return nil
}

// StopAt makes the server stop before it answers the n-th request from now.
func (s *Server) StopAt(t testing.TB, request Request, n int) {
	t.Helper()
	if _, err := fmt.Fprintln(s.orders, request, n); err != nil {
		t.Fatal(err)
	}
	if err := s.hear("set"); err != nil {
		t.Fatal(err)
	}
}

// Stop makes the server stop at once.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if err := s.cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(2 * time.Minute); !s.Stopped(t); {
		if time.Now().After(until) {
			t.Fatal("the server does not stop")
		}
		<-time.After(time.Millisecond)
	}
}

// Stopped tells whether the server has stopped.
func (s *Server) Stopped(t testing.TB) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	text := string(stat) // pid (name) state ...
	return strings.HasPrefix(text[strings.LastIndexByte(text, ')')+1:], " T")
}

// Kill ends the server for good: whatever hangs fails.
func (s *Server) Kill() error { return s.cmd.Process.Kill() }

// Continue makes the server answer again, and all that it has not answered yet. It does not stop again, also if a request at which it was
// to stop comes just now.
func (s *Server) Continue(t testing.TB) {
	t.Helper()
	if _, err := fmt.Fprintln(s.orders, Lookup, 0); err != nil {
		t.Fatal(err)
	}
	heard := make(chan error, 1)
	go func() { heard <- s.hear("set") }()
	for {
		if err := s.cmd.Process.Signal(unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-heard:
			if err != nil {
				t.Fatal(err)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}
