package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// records is the folder with a file for each process, named by its ID, that contains its start time.
const records = "processes"

// endLimit is the limit for a killed process to end.
const endLimit = 2 * time.Minute

// Process is a process that a run has started.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // its result; set before done is closed
}

// Start starts the command. The kernel kills it when this process dies, and a later run does so at the latest.
func (w *Workspace) Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	begun := make(chan error, 1)
	go p.run(w.Path(records), begun)
	if err := <-begun; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// run stays on one thread: for the kernel, the death of the thread that started a child is the death of the parent
// (prctl(2), PR_SET_PDEATHSIG).
func (p *Process) run(dir string, begun chan<- error) {
	runtime.LockOSThread()
	defer close(p.done)
	if err := p.cmd.Start(); err != nil {
		begun <- err
		return
	}
	err := record(dir, p.cmd.Process.Pid)
	if err != nil {
		err = errors.Join(err, p.cmd.Process.Kill())
	}
	begun <- err
	p.err = p.cmd.Wait()
	_ = os.Remove(filepath.Join(dir, strconv.Itoa(p.cmd.Process.Pid))) // A stale record is harmless.
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns the process's result, after Done.
func (p *Process) Err() error { return p.err }

// Kill ends the process and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // It may have just ended.
	<-p.done
}

func record(dir string, pid int) error {
	started, err := startTime(pid)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, strconv.Itoa(pid)), []byte(started), 0o600)
}

// endAll kills the recorded processes that still run. Their IDs may belong to other processes by now, which the start
// time reveals.
func endAll(dir string) error {
	entries, err := os.ReadDir(filepath.Join(dir, records))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var problems []error
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		was, err := os.ReadFile(filepath.Join(dir, records, entry.Name()))
		if err == nil {
			err = end(pid, string(was))
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// end kills the process with the ID if its start time is the recorded one, and waits for its end.
func end(pid int, started string) error {
	// From here on, a reuse of the ID cannot go unnoticed.
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("pidfd_open", err)
	}
	defer func() { _ = unix.Close(fd) }()
	now, err := startTime(pid)
	if errors.Is(err, fs.ErrNotExist) || err == nil && now != started {
		return nil
	}
	if err == nil {
		err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	// The descriptor becomes readable when the process has ended.
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(endLimit.Milliseconds()))
	if err == nil && n == 0 {
		err = fmt.Errorf("process %d does not end within %v", pid, endLimit)
	}
	return err
}

// startTime returns the process's start time, in clock ticks after boot: field 22 of /proc/PID/stat, proc_pid_stat(5).
func startTime(pid int) (string, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		if errors.Is(err, unix.ESRCH) {
			err = fs.ErrNotExist
		}
		return "", err
	}
	// The second field is the command in parentheses, and may contain any characters.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has %d fields after the command, not 20", pid, len(fields))
	}
	if state := fields[0][0]; state == 'Z' || state == 'X' {
		return "", fmt.Errorf("process %d has ended: %w", pid, fs.ErrNotExist)
	}
	return string(fields[19]), nil
}
