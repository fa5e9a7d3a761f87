package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newMachine(t *testing.T) *Machine {
	t.Helper()
	return New(t.Context(), slog.New(slog.NewTextHandler(t.Output(), nil)), "/usr/bin:/bin")
}

// eventually waits for at most two minutes.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := Until(ctx, what, check); err != nil {
		t.Fatal(err)
	}
}

func TestRun(t *testing.T) {
	m := newMachine(t)
	if err := m.Run(t.Context(), "true"); err != nil {
		t.Error(err)
	}
	if err := m.Run(t.Context(), "sh", "-c", "echo why >&2; exit 3"); err == nil ||
		!strings.Contains(err.Error(), "exit code 3: why") {
		t.Errorf("the error is %v", err)
	}
	if err := m.Run(t.Context(), "no-such-program"); err == nil {
		t.Error("a program that is not there ran")
	}
	// Stimulus: sleep takes a minute.
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := m.Run(ctx, "sleep", "60"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error of a command that took too long is %v", err)
	}
}

// TestStartAgain lets a component end, and checks that it is started again until the machine ends.
func TestStartAgain(t *testing.T) {
	m := newMachine(t)
	log := filepath.Join(t.TempDir(), "log")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := 0
	m.Start(ctx, Component{
		Name: "short", Argv: []string{"/bin/sh", "-c", "echo begun"}, Log: log,
		Started: func(context.Context, *os.Process) error { started++; return nil },
	})
	eventually(t, "three lives", func(context.Context) error {
		text, err := os.ReadFile(log)
		if lives := bytes.Count(text, []byte("begun\n")); err == nil && lives < 3 {
			err = fmt.Errorf("it ran %d times", lives)
		}
		return err
	})
	cancel()
	m.Wait()
	if started < 3 {
		t.Errorf("only %d starts were announced", started)
	}
}

// TestReapOrphans checks that a process whose parent ended first is reaped.
func TestReapOrphans(t *testing.T) {
	// As process 1, the machine would get orphans without this call.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	file := filepath.Join(t.TempDir(), "pid")
	if err := m.Run(t.Context(), "sh", "-c", "sleep 0.2 & echo $! > "+file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the orphan", func(context.Context) error {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("process %d is there (%w)", pid, err)
		}
		return nil
	})
}

func TestAnswers(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	check := Answers("unix", socket)
	if err := check(t.Context()); err == nil {
		t.Error("nobody listens, and it answers")
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := check(t.Context()); err != nil {
		t.Error(err)
	}
}
