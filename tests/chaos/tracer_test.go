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

// The tracer runs a victim and stops it before each system call that counts.
//
// The victim is started with PTRACE_TRACEME (SysProcAttr.Ptrace) by one thread, which is the tracer from then
// on: ptrace(2) obeys only the thread that attached, so that everything here runs on one locked thread. The
// victim runs at full speed until its operation begins. Then it installs a seccomp filter on itself that
// answers SECCOMP_RET_TRACE for the calls in the table (calls_amd64_test.go) and allows all others: futex,
// mmap, epoll and the rest of the Go runtime cost nothing and are never seen. The filter is the mark of the
// beginning; a prctl(2) with a number of our own is the mark of the end. Threads and commands that the victim
// starts inherit the filter and, by PTRACE_O_TRACECLONE, TRACEFORK and TRACEVFORK, the tracer.
//
// So each call of interest becomes one stop (PTRACE_EVENT_SECCOMP), before it is made. At a stop the tracer
// reads the registers, reads what paths and descriptors the call is about, and asks the plan. The plan says one of:
//
//   - proceed: PTRACE_CONT;
//   - fail: the call's number becomes -1 and its result the errno (seccomp(2), "SECCOMP_RET_TRACE": a tracer can
//     skip the call so), and the caller sees a call that failed and did nothing;
//   - kill: the victim, the command, or both get SIGKILL while they are stopped, and the call is never made;
//   - hold: the caller stays stopped while everybody else goes on, until the victim's operation has ended or a
//     limit has passed. The victim is told by SIGUSR1 that its request's time is over.
//
// A kill after a call is a kill before the next one: there is nothing in between that others could see.
//
// A command that survives its killed driver stays traced, for without a tracer its calls would fail with
// ENOSYS. It stays stopped at its next call, holding what locks it has, until drain lets it run to its end:
// so a retry meets it for certain. PTRACE_O_EXITKILL sees to it that nothing outlives the tracer.
//
// Points are numbered over all threads in the order of their stops. One processor (GOMAXPROCS=1), no garbage
// collection and no preemption by signals make that order the same in each run, nearly: the label and how often
// it occurred before, not the number, is what finds a point again, so that a scan of other people's loop
// devices shifts nothing.
type tracer struct {
	victim    int // thread group of the victim
	commands  map[int]string
	mu        sync.Mutex    // guards changes of tasks against killAll
	tasks     map[int]*task // by thread
	plan      plan
	describer describer
	ended     bool // the victim said that its operation is over
	done      bool // the victim is gone
	held      int  // the thread that is held; 0 for none
	heldTill  time.Time
	overran   bool // the operation did not end while the call was held
}

// task is a traced thread.
type task struct {
	group   int
	started bool // its first SIGSTOP is behind it
}

// plan decides what happens at a point.
type plan func(c call) action

// action is what is done at a point.
type action struct {
	errno unix.Errno
	kill  []target
	hold  bool
}

// target is who is killed.
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
	command string // the program that makes it; empty for the victim itself
	write   bool
	end     bool // a program's exit
}

// label is what a call is called in listings, and is recognised by.
func (c call) label() string {
	who := ""
	if c.command != "" {
		who = c.command + ": "
	}
	return fmt.Sprintf("%s%s(%s)", who, c.name, c.args)
}

const traceOptions = unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_EXITKILL

// startTraced starts a program that is traced by the calling thread, which must be locked.
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

// run serves all traced threads until the victim is gone. Commands that survive it are left stopped.
func (t *tracer) run() error {
	for !t.done {
		if err := t.step(); err != nil {
			return err
		}
	}
	return nil
}

// drain lets the commands that survived the victim run to their end.
func (t *tracer) drain() error {
	t.plan = func(call) action { return action{} }
	for len(t.tasks) > 0 {
		if err := t.step(); err != nil {
			return err
		}
	}
	return nil
}

// step waits for one stop and serves it.
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

// holdPoll is how often a held call is looked after.
const holdPoll = time.Millisecond

// waitHeld passes a moment while a call is held, and ends that when its limit has passed.
func (t *tracer) waitHeld() {
	if time.Now().Before(t.heldTill) {
		<-time.After(holdPoll)
		return
	}
	t.overran = true
	t.release()
}

// release lets the held call go on.
func (t *tracer) release() {
	if t.held != 0 {
		_ = unix.PtraceCont(t.held, 0) // it may have been killed meanwhile
		t.held = 0
	}
}

// gone forgets a thread that has ended.
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

// alive drops the error of a call to a thread that died in its stop.
func alive(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// groups lists the thread groups that are traced.
func (t *tracer) groups() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	var groups []int
	for _, task := range t.tasks {
		groups = append(groups, task.group)
	}
	return groups
}
