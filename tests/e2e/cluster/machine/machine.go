package machine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// pause is the delay before a component that ended is started again.
const pause = time.Second

// Machine runs components.
type Machine struct {
	Log *slog.Logger

	reaper *reaper
	path   string // the search path for programs
	group  sync.WaitGroup
}

// Component is a program that runs as long as the machine.
type Component struct {
	Name string
	Argv []string // starts with the program's path
	Log  string   // the file that its output is appended to
	// Namespaces are new namespaces for the process, as CLONE_NEW… flags of clone(2).
	Namespaces uintptr
	// Prepare is called before each start if it is not nil.
	Prepare func(ctx context.Context) error
	// Started is called with each new process, before the machine waits for its end.
	Started func(ctx context.Context, process *os.Process) error
}

// New returns a machine whose processes search for programs in path, a list of folders separated by colons.
func New(ctx context.Context, log *slog.Logger, path string) *Machine {
	m := &Machine{Log: log, reaper: newReaper(), path: path}
	go m.reaper.run(ctx)
	return m
}

func (m *Machine) environment() []string {
	return []string{"PATH=" + m.path, "HOME=/root", "LANG=C.UTF-8"}
}

// Run runs a command to its end. If it fails, the error contains its output.
func (m *Machine) Run(ctx context.Context, argv ...string) error {
	out, err := os.CreateTemp("", "output-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()); _ = out.Close() }()
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	attr := &os.ProcAttr{Env: m.environment(), Files: []*os.File{null, out, out}}
	process, ended, err := m.reaper.start(append([]string{program}, argv[1:]...), attr)
	if err != nil {
		return err
	}
	select {
	case status := <-ended:
		if status != 0 {
			text, _ := os.ReadFile(out.Name()) // The output is only extra information.
			return fmt.Errorf("%s: %s: %s", strings.Join(argv, " "), describe(status), text)
		}
		return nil
	case <-ctx.Done():
		_ = process.Kill() // It may have just ended.
		return fmt.Errorf("%s: %w", strings.Join(argv, " "), ctx.Err())
	}
}

// Start starts a component and keeps it running until ctx is done.
func (m *Machine) Start(ctx context.Context, c Component) {
	m.group.Go(func() {
		for ctx.Err() == nil {
			m.once(ctx, c)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
}

// Wait waits until ctx is done and no component will be started again.
func (m *Machine) Wait() { m.group.Wait() }

func (m *Machine) once(ctx context.Context, c Component) {
	if c.Prepare != nil {
		if err := c.Prepare(ctx); err != nil {
			m.Log.Error("cannot prepare", "component", c.Name, "error", err)
			return
		}
	}
	process, ended, err := m.start(c)
	if err != nil {
		m.Log.Error("cannot start", "component", c.Name, "error", err)
		return
	}
	m.Log.Info("started", "component", c.Name, "pid", process.Pid)
	if c.Started != nil {
		if err := c.Started(ctx, process); err != nil {
			m.Log.Error("cannot set up", "component", c.Name, "error", err)
			_ = process.Kill() // It may have just ended.
		}
	}
	select {
	case status := <-ended:
		m.Log.Error("ended; it is started again", "component", c.Name, "pid", process.Pid, "how", describe(status), "log",
			c.Log)
	case <-ctx.Done():
	}
}

func (m *Machine) start(c Component) (*os.Process, <-chan syscall.WaitStatus, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = log.Close() }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = null.Close() }()
	return m.reaper.start(c.Argv, &os.ProcAttr{
		Env:   m.environment(),
		Files: []*os.File{null, log, log},
		Sys:   &syscall.SysProcAttr{Setsid: true, Cloneflags: c.Namespaces},
	})
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", status.ExitStatus())
}
