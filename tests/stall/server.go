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
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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
	s.order(t, request, n)
}

// DenyMove makes the server say that the n-th move from now has failed, once it has made it.
func (s *Server) DenyMove(t testing.TB, n int) {
	t.Helper()
	s.order(t, moved, n)
}

// DenySync makes the server say that the n-th sync of a directory from now has failed.
func (s *Server) DenySync(t testing.TB, n int) {
	t.Helper()
	s.order(t, synced, n)
}

// Requests returns how many requests the server has been sent since it was started.
func (s *Server) Requests(t testing.TB) int {
	t.Helper()
	if _, err := fmt.Fprintln(s.orders, counted, 0); err != nil {
		t.Fatal(err)
	}
	if !s.answers.Scan() {
		t.Fatalf("the server does not say how many requests it was sent: %v", s.answers.Err())
	}
	all, err := strconv.Atoi(s.answers.Text())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (s *Server) order(t testing.TB, request Request, n int) {
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

// Stopped reports whether the server has stopped, with each of its threads. It stays so until the server continues:
// also no thread runs that was started while the others were being looked at.
func (s *Server) Stopped(t testing.TB) bool {
	t.Helper()
	threads := s.threads(t)
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			return false // It ended just now: the server ran.
		}
		if err != nil {
			t.Fatal(err)
		}
		text := string(stat) // pid (name) state ...
		if !strings.HasPrefix(text[strings.LastIndexByte(text, ')')+1:], " T") {
			return false
		}
	}
	return slices.Equal(threads, s.threads(t))
}

// threads are the files with the states of the server's threads.
func (s *Server) threads(t testing.TB) []string {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.cmd.Process.Pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("the server has the threads %v (%v), want some", threads, err)
	}
	return threads
}

// Kill ends the server for good: whatever hangs fails.
func (s *Server) Kill() error { return s.cmd.Process.Kill() }

// Continue makes the server answer again, and all that it has not answered yet. It does not stop again, also if a
// request at which it was to stop comes just now.
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
		// Stimulus: a pause between two looks.
		case <-time.After(time.Millisecond):
		}
	}
}
