package chaos

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stopped handles one stop of a thread.
func (t *tracer) stopped(tid int, status unix.WaitStatus) error {
	task, err := t.task(tid)
	if err != nil {
		return err
	}
	signal := status.StopSignal()
	switch {
	case status.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
		return t.atCall(tid, task)
	case status.TrapCause() == unix.PTRACE_EVENT_EXEC:
		t.executed(tid, task)
		return unix.PtraceCont(tid, 0)
	case status.TrapCause() > 0:
		return unix.PtraceCont(tid, 0)
	case signal == unix.SIGSTOP && !task.started:
		task.started = true
		return unix.PtraceCont(tid, 0)
	}
	return unix.PtraceCont(tid, int(signal))
}

// task returns the state of a thread, and looks up a new one.
func (t *tracer) task(tid int) (*task, error) {
	if known, ok := t.tasks[tid]; ok {
		return known, nil
	}
	group, err := groupOf(tid)
	if err != nil {
		return nil, unix.ESRCH
	}
	fresh := &task{group: group}
	t.mu.Lock()
	t.tasks[tid] = fresh
	t.mu.Unlock()
	if group != t.victim && t.commands[group] == "" {
		t.commands[group] = starting
	}
	return fresh, nil
}

// groupOf returns the thread group of a thread (proc_pid_status(5)).
func groupOf(tid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(status, []byte("\nTgid:"))
	line, _, _ := bytes.Cut(rest, []byte{'\n'})
	return strconv.Atoi(strings.TrimSpace(string(line)))
}

// executed records the name of the program that a process now runs.
func (t *tracer) executed(tid int, task *task) {
	if task.group == t.victim {
		return
	}
	if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", tid)); err == nil {
		program, _, _ := bytes.Cut(name, []byte{0})
		t.commands[task.group] = filepath.Base(string(program))
	}
}

// atCall asks the plan for the action at a call, and executes it.
func (t *tracer) atCall(tid int, task *task) error {
	regs, err := readCall(tid)
	if err != nil {
		return err
	}
	if regs.isEnd() && task.group == t.victim {
		t.ended = true
		t.release()
	}
	c, counts := t.describe(tid, task, regs)
	if !counts || t.ended || t.done {
		return unix.PtraceCont(tid, 0)
	}
	return t.act(tid, c, t.plan(c))
}

// holdLimit limits the time that a call is held if the operation does not end earlier. It is longer than the time that
// the pipeline gives a command to die.
const holdLimit = 5 * time.Second

// act executes the plan's action.
func (t *tracer) act(tid int, c call, a action) error {
	for _, who := range a.kill {
		group := t.victim
		if who == theCommand {
			group = c.group
		}
		if err := unix.Kill(group, unix.SIGKILL); err != nil {
			return fmt.Errorf("kill %d: %w", group, err)
		}
	}
	switch {
	case a.hold:
		t.held, t.heldTill = tid, time.Now().Add(holdLimit)
		return unix.Kill(t.victim, unix.SIGUSR1)
	case a.errno != 0:
		if err := failCall(tid, a.errno); err != nil {
			return err
		}
	}
	return unix.PtraceCont(tid, 0)
}
