package chaos

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The tracer runs a victim and stops it before each relevant system call.
//
// One thread, the tracer, starts the victim with PTRACE_TRACEME (SysProcAttr.Ptrace). ptrace(2) accepts requests only
// from the thread that attached, so that everything here runs on one locked thread. The victim runs at full speed until
// its operation begins. Then it installs a seccomp filter on itself that returns SECCOMP_RET_TRACE for the calls in the
// table (tracer_calls_test.go) and allows all others: futex, mmap, epoll and the rest of the Go runtime cost nothing
// and are never seen. The filter marks the beginning; a prctl(2) with a private number marks the end. Threads and
// commands of the victim inherit the filter and, by PTRACE_O_TRACECLONE, TRACEFORK and TRACEVFORK, the tracer.
//
// Each relevant call thus causes one stop (PTRACE_EVENT_SECCOMP) before it is made. At a stop the tracer reads the
// registers and the call's paths and descriptors, and asks the plan, which returns one of:
//
//   - proceed: PTRACE_CONT;
//   - fail: the call's number becomes -1 and its result the errno (seccomp(2), "SECCOMP_RET_TRACE": a tracer can thus
//     skip the call). For the caller, the call has failed without effect;
//   - kill: the victim, the command, or both get SIGKILL while they are stopped, and the call is never made;
//   - hold: the caller stays stopped while all others continue, until the victim's operation has ended or a limit has
//     passed. SIGUSR1 tells the victim that its request's time is over.
//
// A kill after a call is a kill before the next one: there is no visible effect in between.
//
// A command that survives its killed driver stays traced, because without a tracer its calls would fail with ENOSYS. It
// stays stopped at its next call, with its locks, until drain lets it finish: a retry is thus certain to meet it.
// PTRACE_O_EXITKILL ensures that nothing outlives the tracer.
//
// Points are numbered over all threads in the order of their stops. One processor (GOMAXPROCS=1), no garbage collection
// and no preemption by signals make that order almost the same in each run. A point is found again by its label and the
// number of its earlier occurrences, not by its number, so that a scan of other processes' loop devices changes
// nothing.
type tracer struct {
	victim    int // thread group of the victim
	commands  map[int]string
	mu        sync.Mutex    // guards changes of tasks against killAll
	tasks     map[int]*task // by thread
	plan      plan
	describer describer
	ended     bool // the victim has reported the end of its operation
	done      bool // the victim is gone
	held      int  // the held thread; 0 for none
	heldTill  time.Time
	overran   bool // the operation did not end while the call was held
}

// task is a traced thread.
type task struct {
	group   int
	started bool // its first SIGSTOP has been handled
}

// plan decides the action at a point.
type plan func(c call) action

// action is executed at a point.
type action struct {
	errno unix.Errno
	kill  []target
	hold  bool
}

// target is a process to kill.
type target int

const (
	theVictim target = iota
	theCommand
)

// call is a system call that is about to be made.
type call struct {
	name    string
	args    string // normalised
	group   int
	command string // the program that makes the call; empty for the victim itself
	write   bool
	end     bool // a program's exit
}

// label identifies a call, also in listings.
func (c call) label() string {
	who := ""
	if c.command != "" {
		who = c.command + ": "
	}
	return fmt.Sprintf("%s%s(%s)", who, c.name, c.args)
}

const traceOptions = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_EXITKILL

// startTraced starts a program under the tracer, which is the calling, locked thread.
func startTraced(argv, env []string, output *os.File, d describer, p plan) (*tracer, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }() // the victim has its own
	pid, err := syscall.ForkExec("/proc/self/exe", argv, &syscall.ProcAttr{
		Env: env, Files: []uintptr{null.Fd(), output.Fd(), output.Fd()}, Sys: &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start the victim under ptrace: %w", err)
	}
	t := &tracer{victim: pid, plan: p, describer: d, commands: map[int]string{},
		tasks: map[int]*task{pid: {group: pid, started: true}}}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
		return nil, fmt.Errorf("wait for the victim's exec: %w", err)
	}
	if err := unix.PtraceSetOptions(pid, traceOptions); err != nil {
		return nil, fmt.Errorf("PTRACE_SETOPTIONS: %w", err)
	}
	return t, unix.PtraceCont(pid, 0)
}

// run handles all traced threads until the victim is gone. Commands that survive it stay stopped.
func (t *tracer) run() error {
	for !t.done {
		if err := t.step(); err != nil {
			return err
		}
	}
	return nil
}

// drain lets the commands that survived the victim finish.
func (t *tracer) drain() error {
	t.plan = func(call) action { return action{} }
	for len(t.tasks) > 0 {
		if err := t.step(); err != nil {
			return err
		}
	}
	return nil
}

// step waits for one stop and handles it.
func (t *tracer) step() error {
	var status unix.WaitStatus
	options := unix.WALL | unix.WNOTHREAD
	if t.held != 0 {
		options |= unix.WNOHANG
	}
	tid, err := unix.Wait4(-1, &status, options, nil)
	switch {
	case errors.Is(err, unix.EINTR):
		return nil
	case errors.Is(err, unix.ECHILD):
		t.done = true
		t.mu.Lock()
		clear(t.tasks)
		t.mu.Unlock()
		return nil
	case err != nil:
		return fmt.Errorf("wait4: %w", err)
	case tid == 0:
		t.waitHeld()
		return nil
	case status.Exited() || status.Signaled():
		t.gone(tid)
		return nil
	}
	return alive(t.stopped(tid, status))
}

// holdPoll is the interval of checks on a held call.
const holdPoll = time.Millisecond

// waitHeld waits briefly while a call is held, and releases it when its limit has passed.
func (t *tracer) waitHeld() {
	if time.Now().Before(t.heldTill) {
		<-time.After(holdPoll)
		return
	}
	t.overran = true
	t.release()
}

// release lets the held call continue.
func (t *tracer) release() {
	if t.held != 0 {
		_ = unix.PtraceCont(t.held, 0) // it may have been killed in the meantime
		t.held = 0
	}
}

// gone removes a thread that has ended.
func (t *tracer) gone(tid int) {
	t.mu.Lock()
	delete(t.tasks, tid)
	t.mu.Unlock()
	if tid == t.held {
		t.held = 0
	}
	if tid == t.victim {
		t.release()
		t.done = true
	}
}

// alive ignores the error of a call to a thread that died while stopped.
func alive(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// groups lists the traced thread groups.
func (t *tracer) groups() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	var groups []int
	for _, task := range t.tasks {
		groups = append(groups, task.group)
	}
	return groups
}
