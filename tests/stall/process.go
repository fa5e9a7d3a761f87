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
	"time"

	"golang.org/x/sys/unix"
)

// Process is a filesystem that can be stalled, for a program that handles its failures itself. Only one goroutine at a
// time may stop it or let it continue.
type Process struct {
	Dir  string // where it is mounted
	Real string // the directory that it serves

	cmd        *exec.Cmd
	orders     io.WriteCloser
	answers    chan string // closed once the server has ended
	end, ended chan struct{}
}

// patience is the time limit for a server to obey, which no busy machine needs.
const patience = 2 * time.Minute

// ServeAt serves a directory at a place until it is closed. The caller holds the lock of Alone while the server may
// stop.
func ServeAt(dir, place string) (*Process, error) {
	p := &Process{Dir: place, Real: dir, answers: make(chan string, 1), end: make(chan struct{}),
		ended: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		<-p.ended
		return nil, fmt.Errorf("serving %s: %w", dir, err)
	}
	return p, nil
}

// run runs the server until its end, on one thread, because it is killed with that thread: that waits for nothing in
// the kernel.
func (p *Process) run(started chan<- error) {
	defer close(p.ended)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.start()
	started <- err
	if err == nil {
		<-p.end
	}
	if p.cmd.Process != nil {
		_ = p.cmd.Process.Kill() // it may have ended
		_ = p.cmd.Wait()         // by a signal
	}
}

func (p *Process) start() (err error) {
	p.cmd = exec.CommandContext(context.Background(), "/proc/self/exe", serveWord, p.Real, p.Dir)
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.orders, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	answers, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go p.listen(answers)
	return p.hear("serving", nothing)
}

// listen passes on the server's answers, until it ends.
func (p *Process) listen(answers io.Reader) {
	defer close(p.answers)
	for lines := bufio.NewScanner(answers); lines.Scan(); {
		p.answers <- lines.Text()
	}
}

// Close ends the server for good and unmounts its filesystem. Users of the filesystem must have been stopped before.
func (p *Process) Close() error {
	close(p.end)
	<-p.ended
	if err := unix.Unmount(p.Dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmounting what was served at %s: %w", p.Dir, err)
	}
	return nil
}

// Kill ends the server for good: hanging calls fail.
func (p *Process) Kill() error { return p.cmd.Process.Kill() }

// hear waits until the server answers with a word, and calls meanwhile repeatedly until then.
func (p *Process) hear(word string, meanwhile func() error) error {
	said, err := p.answer(meanwhile)
	if err == nil && said != word {
		err = fmt.Errorf("the server says %q, want %q", said, word)
	}
	return err
}

// answer waits for the server's next answer, and calls meanwhile repeatedly until then. A server that does not answer
// is killed, because a later answer would be mistaken for that to another order.
func (p *Process) answer(meanwhile func() error) (string, error) {
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if err := meanwhile(); err != nil {
			return "", err
		}
		select {
		case said, ok := <-p.answers:
			if !ok {
				return "", errEnded
			}
			return said, nil
		// Stimulus: a pause between two looks.
		case <-time.After(time.Millisecond):
		}
	}
	return "", errors.Join(fmt.Errorf("the server does not answer for %v, and is killed", patience), p.Kill())
}

func nothing() error { return nil }

// StopAt makes the server stop before it answers the n-th request from now.
func (p *Process) StopAt(request Request, n int) error { return p.order(request, n) }

func (p *Process) order(request Request, n int) error {
	if _, err := fmt.Fprintln(p.orders, request, n); err != nil {
		return err
	}
	return p.hear("set", nothing)
}

// Requests returns how many requests the server has been sent since it was started.
func (p *Process) Requests() (int, error) {
	if _, err := fmt.Fprintln(p.orders, counted, 0); err != nil {
		return 0, err
	}
	said, err := p.answer(nothing)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(said)
}

// Stop makes the server stop at once.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(unix.SIGSTOP); err != nil {
		return err
	}
	for until := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		if stopped, err := p.Stopped(); err != nil || stopped {
			return err
		}
		if time.Now().After(until) {
			return errors.New("the server does not stop")
		}
	}
}

// errEnded says that the server will neither stop nor answer any more.
var errEnded = errors.New("the server has ended")

// Stopped reports whether the server has stopped, with each of its threads. It stays stopped until the server
// continues: no thread runs either that was started during the check of the others. A server that has ended is an
// error.
func (p *Process) Stopped() (bool, error) {
	threads, err := p.threads()
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			return false, nil // It ended just now: the server ran.
		}
		if err != nil {
			return false, err
		}
		text := string(stat) // pid (name) state ...
		switch state := text[strings.LastIndexByte(text, ')')+1:]; {
		case strings.HasPrefix(state, " Z"):
			return false, errEnded // It is waited for when it is closed.
		case !strings.HasPrefix(state, " T"):
			return false, nil
		}
	}
	now, err := p.threads()
	return slices.Equal(threads, now), err
}

// threads returns the files with the states of the server's threads.
func (p *Process) threads() ([]string, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	if err == nil && len(threads) == 0 {
		err = errEnded
	}
	return threads, err
}

// Continue makes the server answer again, including all requests that it has not answered yet. It does not stop again,
// even if a request at which it was to stop comes just now.
func (p *Process) Continue() error {
	if _, err := fmt.Fprintln(p.orders, Lookup, 0); err != nil {
		return err
	}
	return p.hear("set", func() error { return p.cmd.Process.Signal(unix.SIGCONT) })
}
